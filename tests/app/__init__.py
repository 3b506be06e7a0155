"""The application side, run against the oracle."""
