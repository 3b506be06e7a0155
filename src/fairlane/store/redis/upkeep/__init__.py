"""The upkeep facet: retention, and the store itself."""
