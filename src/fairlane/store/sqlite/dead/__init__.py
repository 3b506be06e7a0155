"""What people do with dead letters: one module per verb, `facet` ties them to the threads."""
