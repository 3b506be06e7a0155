"""What attempts of tasks with a breaker come to: told before they are settled (S58, S110).

A failure and the end of a job that passed an open breaker are told at once, so that a claim that comes with
the settlement sees the state that follows. Successes go with the next call, four seconds later at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from fairlane.app.client import Client
from fairlane.app.guards.breaker_memory import of_permit
from fairlane.app.guards.declared import declared_breakers
from fairlane.app.task.declaration import Declaration
from fairlane.model.errors import StoreError
from fairlane.model.policy.declared import Breaker
from fairlane.model.retry.decision import AttemptResult, Failed, Succeeded
from fairlane.store.contract.breakers import BreakerKey, BreakerOutcomes
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.lane_state import PendingSettlement


def learn_breakers(client: Client) -> None:
    """Learn which breakers there are. Only if there are any, claims name those that are not closed (S124)."""
    client.breaker_memory.declared.update(declared_breakers(client.settings, client.registry))


def breaker_of(client: Client, declared: Declaration) -> Breaker | None:
    """Return the breaker of a task; None if it has none."""
    name = declared.breaker_name
    known = client.breaker_memory.declared
    if name is not None and name not in known:
        learn_breakers(client)
    return None if name is None else known.get(name)


def note_outcome(attempt: LiveAttempt, result: AttemptResult) -> None:
    """Note how an attempt has ended for the breaker of its task, if it has one."""
    if attempt.declared.breaker is None:
        return
    if isinstance(result, Succeeded):
        attempt.outcomes = (True,)
    elif isinstance(result, Failed) and result.is_counted:
        attempt.outcomes = (False,)
    else:
        attempt.outcomes = (None,)


async def tell_outcomes(client: Client, batch: Iterable[PendingSettlement]) -> None:
    """Tell the store what it must know before these are settled. Each outcome counts once.

    Without an answer they are settled all the same: a permit is free once its job has ended.
    """
    memory, passed, must_tell = client.breaker_memory, list[BreakerOutcomes](), False
    about: set[BreakerKey] = set()
    for done in batch:
        attempt = done.attempt
        name, outcomes = attempt.declared.breaker_name, attempt.outcomes
        if name is None or not outcomes:
            continue
        attempt.outcomes = ()
        (outcome,), job = outcomes, attempt.claim.job
        if attempt.has_permit:
            passed.append(of_permit(name, job.tenant, job.id, passed=outcome))
        elif outcome is not None:
            memory.note(name, job.tenant, succeeded=int(outcome), failed=int(not outcome))
        is_due = not memory.is_fresh(memory.word(name, job.tenant))
        if is_due:
            about.add(BreakerKey(name, job.tenant))
        must_tell = must_tell or attempt.has_permit or outcome is False or is_due
    if must_tell:
        with suppress(StoreError):
            await memory.tell(client.store, *passed, about=about)


def is_held_now(client: Client, attempt: LiveAttempt) -> bool:
    """Whether a claim that has not begun must go back: its breaker has opened since it came (S68)."""
    name = attempt.declared.breaker_name
    if name is None or attempt.has_permit:
        return False
    word = client.breaker_memory.word(name, attempt.claim.job.tenant)
    is_newer = word is not None and word.phase != "closed" and word.at > attempt.claimed_at
    return is_newer and client.breaker_memory.is_fresh(word)
