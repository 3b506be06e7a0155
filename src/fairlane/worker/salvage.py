"""Settle one by one what a store could not take together: one bad settlement must not hold up the others.

A store refuses with a `StoreError`, which is waited out. Anything else it raises is a defect that one of the
settlements has brought to light, and would do so again with every try.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.model.failure import ErrorClass, describe
from fairlane.model.judge import Failed, judge
from fairlane.store.contract.claims import Settled, SettleReply
from fairlane.worker import report
from fairlane.worker.lane import Done

Settle: TypeAlias = Callable[[list[Done]], Awaitable[SettleReply]]


async def settle_all(batch: list[Done], together: Settle, alone: Settle) -> SettleReply:
    """Settle a batch together or, if the store raises what it should not, each attempt by itself."""
    try:
        return await together(batch)
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 (whose it is shows when each is sent alone)
        return await _each(batch, alone)


async def _each(batch: list[Done], settle: Settle) -> SettleReply:
    """Settle one after the other; one that cannot be is settled as failed, and replaced in the batch.

    What is raised on that, too, goes on up, and ends the worker.
    """
    settled: list[Settled] = []
    stale: list[UUID] = []
    for at, done in enumerate(batch):
        try:
            reply = await settle([done])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 (of whatever class: this attempt fails by it)
            report.broken(done.attempt, error)
            failed = Failed(describe(error, ErrorClass.RETRYABLE))
            batch[at] = Done(done.attempt, judge(done.attempt.claim, failed, draw=random.random()))  # noqa: S311 (spreads)
            reply = await settle([batch[at]])
        settled += reply.settled
        stale += reply.stale
    return SettleReply(tuple(settled), tuple(stale))
