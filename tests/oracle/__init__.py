"""The contract in plain memory over the model: it says what the right answer is. Never shipped.

Slow on purpose where slow is plain: it scans where a store needs an index. One thing it copies from the
stores on purpose is parking (S42), because when a strand is parked and woken decides whose turn is next.
"""
