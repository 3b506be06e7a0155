"""Real worker processes on a store, and what was seen of them: what the demo and the benchmarks share."""
