"""Campaigns of faults on real stores with real workers, in pieces that add up. `make prove` runs them.

What was done and found is a line in docs/proofs/faults.jsonl; docs/proofs/faults.md is made of these lines.
"""
