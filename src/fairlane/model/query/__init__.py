"""The query language for jobs: `state:dead tenant:acme task:mail.* -tag:vip run:>5m`. Knows no store.

- `syntax`: the tree of a query, and the error that points into its text.
- `parser`: text becomes a tree of terms.
- `fields`: what can be asked for, and what of a job each field compares.
- `values`: what stands behind the colon: a text, a number, a duration, a time.
- `matching`: a tree becomes a test of one job.
- `narrowing`: the part of a query that a store answers itself.
"""
