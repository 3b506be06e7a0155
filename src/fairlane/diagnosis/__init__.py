"""What can be wrong with a store and its workers: snapshot, checks, findings. Reads only."""
