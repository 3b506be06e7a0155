"""Tasks and handlers: declare a task, inspect its handler, publish it; the context of a running attempt."""
