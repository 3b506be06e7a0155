"""The rows that several verbs share: their columns, how they are read, and what follows when they change."""
