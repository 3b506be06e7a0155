"""Breakers in the processes that use them: which there are, what was seen of them, the `with` block."""
