"""Tests of how callers of the web become known: every way in, and each way that is refused."""
