"""What follows from a finished attempt: retry, snooze, cancel, success or death."""
