"""The duties of the two journals: number and tell events, seal the audit, remove what is old (S60, S76, S77).

The duty's own memory is stored with the entries and replaced by compare-and-set, so a leader may be killed
between any two calls: the next one goes on from there, and of two leaders at once one does the work.
"""
