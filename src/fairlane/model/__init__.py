"""Decisions and nothing else: no clock, no random numbers, no store, no asyncio. The rest is passed in.

- `lifecycle`: states and transitions, admission and idempotency, changes of a job's record, outages.
- `retry`: what a finished attempt means, backoff, and how a handler ends its attempt.
- `policy`: what a team declares, rate limits and other limits, overrides, retention.
- `scheduling`: fairness between tenants, priority inside one, sharing a lane's slots, overload.
- `payload`: arguments and results as JSON, upcasts, secrets.

Modules on this level are used by all of them: records of a job, errors, failures, names, ids, instants.
"""
