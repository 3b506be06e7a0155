"""The arguments of a task: Python values checked by type hints, JSON values read by a published schema."""
