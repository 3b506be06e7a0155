"""Schedules: when their slots are, what is kept of them, and what follows from it."""
