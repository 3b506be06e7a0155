"""Measurements as commands: they print what they measured, on what, and with which settings."""
