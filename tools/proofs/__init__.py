"""Measure what the documents claim, keep it as JSON, and make the pages of docs/proofs from it."""
