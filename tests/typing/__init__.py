"""The public face as type checkers see it."""
