"""What is declared and what overrides it: queues, lanes, limits, rates, gates, retention."""
