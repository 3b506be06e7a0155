"""Where jobs are kept: one contract, and the stores that keep it."""
