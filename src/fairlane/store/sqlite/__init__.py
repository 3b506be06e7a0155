"""The embedded store: one SQLite file, exact and fast, nothing to install or start."""
