"""Run real worker processes on a list of arrivals and record them, for the demo and the benchmarks."""
