"""Upkeep of the store, one pass per module: promote, reclaim, stuck, expire, prune, clean, follow, journals.

One process at a time leads and does them. Two leaders at once do no harm: each pass is one atomic call, or
steps that another leader may repeat.
"""
