"""Tests of the pages of the dashboard."""
