"""Upkeep, one pass a module: promote, reclaim, expire, prune, clean. Correct with any number of leaders."""
