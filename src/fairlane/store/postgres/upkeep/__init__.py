"""The store itself: the upkeep facet, one file for each pass that removes something."""
