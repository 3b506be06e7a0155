"""What callers and operators do with jobs: one module per verb, `facet` ties them to the threads."""
