"""The benchmarks of `fairlane bench`: throughput, latency, fairness and scale, on real workers, checked."""
