"""Check that a suspect runs alone (S39): in its process nothing else runs while it does.

Knows a suspect by the claim of its job before, which was lost. Counts only what the records prove: a handler
without an end ran at least at its start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from fairlane.lab.history.job_history import ClaimHistory, JobHistory
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Moment, Started
from fairlane.model.lifecycle.states import State


class _Run(NamedTuple):
    """A handler in its process: it certainly ran from `at` to `until`."""

    at: Moment
    until: Moment
    is_suspect: bool
    started: Started


class ProcessRuns:
    """All handlers of a run, by the process in which they ran."""

    def __init__(self) -> None:
        self._runs: defaultdict[int, list[_Run]] = defaultdict(list)

    def note(self, history: JobHistory) -> None:
        """Add the handlers of a job."""
        is_suspect = False
        for claim in history.claims:
            for started in claim.started:
                until = max([started.at, *(end.at for end in claim.ended)])
                self._runs[started.pid].append(_Run(started.at, until, is_suspect, started))
            is_suspect = _is_suspect_after(claim, was_suspect=is_suspect)

    def violations(self) -> Iterator[Violation]:
        """Find suspects that ran beside another job, each with the first that was there."""
        for runs in self._runs.values():
            longest: _Run | None = None
            for before, run in pairwise(sorted(runs, key=lambda run: (run.at, run.until))):
                longest = before if longest is None or before.until > longest.until else longest
                if longest.until > run.at and (longest.is_suspect or run.is_suspect):
                    suspect, other = (longest, run) if longest.is_suspect else (run, longest)
                    job, beside = suspect.started.job, other.started.job
                    description = f"suspect {job} ran beside {beside} in process {suspect.started.pid}"
                    yield make_violation(
                        ViolationKind.NOT_ALONE, job, description, suspect.started, other.started
                    )


def _is_suspect_after(claim: ClaimHistory, *, was_suspect: bool) -> bool:
    """Whether the next attempt is one of a suspect; where the end is not recorded, nothing is proved."""
    if claim.reclaimed:
        return claim.reclaimed[0].state is State.READY
    return was_suspect and claim.is_unstarted
