"""Turn answers into text: jobs, policies, times, tables and JSON, with control characters escaped."""
