"""The dead-letter facet: what will not run again without a person, and what people decide about it."""
