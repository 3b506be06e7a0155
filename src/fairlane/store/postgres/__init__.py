"""The store for more than one machine: PostgreSQL, with the same semantics as the others."""
