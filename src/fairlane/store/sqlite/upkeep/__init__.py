"""The maintenance of the store itself: one module per verb, `facet` ties them to the threads."""
