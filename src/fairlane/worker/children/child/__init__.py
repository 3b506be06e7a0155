"""A child's side: its main, one attempt at a time, its stops, its log, what a handler leaves behind."""
