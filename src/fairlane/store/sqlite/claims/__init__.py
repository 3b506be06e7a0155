"""What workers and duties do with jobs: one module per verb, `facet` ties them to the threads."""
