"""Upkeep of the store, one pass per module: promote, reclaim, expire, prune, clean.

One process at a time leads and does them. Two leaders at once do no harm: each pass is one atomic call.
"""
