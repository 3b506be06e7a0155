"""One file for each job queue: how it is set up, filled and run. Each speaks `benchmarks.peers.protocol`."""
