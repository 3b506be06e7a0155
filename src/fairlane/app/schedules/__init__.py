"""Schedules as applications and operators see them: declared by code and file, added, edited and shown."""
