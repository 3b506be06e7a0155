"""Handlers in child processes: real processes, real signals."""
