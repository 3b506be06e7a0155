"""Measurements as commands: each prints its figures, the machine and its settings."""
