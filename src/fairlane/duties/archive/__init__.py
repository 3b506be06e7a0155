"""The archive of finished jobs (S105): `ship` moves batches out of the store, `target` writes files."""
