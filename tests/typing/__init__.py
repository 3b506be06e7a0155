"""The public API as type checkers see it."""
