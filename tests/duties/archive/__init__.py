"""Tests of the archive of finished jobs."""
