"""The parts of one attempt: its arguments, its handler's thread and timeout, its result. Asks for no jobs."""
