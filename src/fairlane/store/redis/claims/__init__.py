"""The claims facet: jobs as workers and duties move them."""
