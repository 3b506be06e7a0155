"""The jobs facet: jobs as callers and operators see them."""
