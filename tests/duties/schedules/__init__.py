"""The duty that makes the jobs of schedules."""
