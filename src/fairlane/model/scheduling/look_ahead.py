"""What may be claimed before a slot is free for it (S68)."""

from __future__ import annotations

from fairlane.model.job import JobRecord


def may_be_ahead(job: JobRecord, *, has_gate: bool, has_rate: bool) -> bool:
    """Whether a claim that ends before its handler starts costs this job nothing.

    A killed worker's claim is a lost attempt: that costs a suspect, a job that runs at most once and one on
    its last attempt something. A rate and a key that lasts until `started` are not given back, and a gate's
    slot is not to be held by what does not run.
    """
    is_last_attempt = job.failures + 1 >= job.max_attempts
    frees_key = job.dedup_key is not None and job.dedup_until == "started"
    return not (job.is_suspect or job.at_most_once or is_last_attempt or frees_key or has_gate or has_rate)
