"""Tests of `app.history`."""
