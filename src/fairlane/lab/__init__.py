"""The laboratory: benchmarks, the demo, and the history checker that judges their runs. No worker uses it."""
