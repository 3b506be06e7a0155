"""Measure what the documents claim, store it as JSON, and make the pages of docs/proofs from it."""
