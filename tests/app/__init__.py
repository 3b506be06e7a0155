"""Tests of the application side, run against the oracle."""
