"""Measure a machine: throughput, latency, fairness, and cost as work grows, with real workers and checks."""
