"""What is allowed: the policies facet, snapshots for verbs that decide in the model, rows for claims."""
