"""The contract in plain memory, over the model: it defines the right answer. Never shipped.

Simple rather than fast: it scans where a store uses an index. Like the stores it implements parking (S42),
because when a strand is parked and woken decides which tenant is next.
"""
