"""The two journals: what operators did (audit), and what happened (events). Knows no store and no clock.

The step that causes an entry appends it, unnumbered, and does nothing else: so nobody waits for anybody
because of a journal. A duty gives the entries numbers, in the order in which they were committed. On that
way events of the same kind and subject are folded, and entries of the audit are sealed into a chain.

- `entries`: what is appended, and what it is once it has a number.
- `kinds`: the kinds of events, how severe each is and whom it concerns.
- `facts`: what happened, as entries of the events.
- `folding`: a storm of events becomes its first one and a count.
- `sealing`: the chain of the audit, and what is wrong with one.
- `operations`: who did what and why, as an entry of the audit.
"""
