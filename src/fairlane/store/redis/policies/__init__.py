"""The policies facet: rules, overrides, pauses and closes."""
