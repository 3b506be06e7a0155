"""Handle the store's answers to settlements.

A store fails with a `StoreError`, which the round trip waits out. Anything else that it raises is a defect
that one of the settlements has triggered, and would trigger again with every try: that one is replaced by a
failure.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.model.failure import ErrorClass, describe
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import Failed, decide_settlement
from fairlane.store.contract.claims import SettledJob, SettleReply
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempts
from fairlane.worker.lane_state import PendingSettlement
from fairlane.worker.shutdown import Shutdown

Send: TypeAlias = Callable[[list[PendingSettlement]], Awaitable[SettleReply]]


class Settler:
    """Handles the store's answers to settlements, and counts them. Changed in the worker's loop only."""

    def __init__(self, attempts: LiveAttempts, shutdown: Shutdown) -> None:
        self.settled_count = 0
        self.failed_count = 0
        self._attempts = attempts
        self._shutdown = shutdown

    def drop_superseded(self, batch: list[PendingSettlement]) -> list[PendingSettlement]:
        """Of two attempts of one job keep the one with the newer fence: the older lost its claim.

        This happens when a job was reclaimed, or its settlement went unanswered, and we claimed it again. The
        store's answer names jobs without fences: of two settlements of one job nobody could say which was
        taken. An older one that has spent something goes with the next call instead: that is counted (S113).
        """
        if len({done.settlement.id.int for done in batch}) == len(batch):  # integers: see `LiveAttempts`
            return batch
        by_fence = sorted(batch, key=lambda done: done.settlement.fence)
        last = {done.settlement.id.int: done for done in by_fence}
        for done in batch:
            if last[done.settlement.id.int] is done:
                continue
            if done.settlement.spent:
                done.attempt.lane.put_back([done])
            else:
                report.stale(done)
                self._attempts.release(done.attempt)
        return list(last.values())

    def answered(self, batch: list[PendingSettlement], reply: SettleReply) -> None:
        """Log and count what the store made of these settlements, and free their slots."""
        states = {one.id.int: one.state for one in reply.settled}  # integers: see `LiveAttempts`
        for done in batch:
            try:
                self._note(done, states.get(done.settlement.id.int), reply)
            except Exception as error:  # noqa: BLE001 (the store has settled it: its slot is free in any case)
                report.attempt_broken(done.attempt, error)
            self._attempts.release(done.attempt)
        if self._shutdown.is_burst:
            self._shutdown.wake_lanes()  # a job that ended may have made others claimable, in any lane

    def _note(self, done: PendingSettlement, state: State | None, reply: SettleReply) -> None:
        if state is not None:
            self.settled_count += done.settlement.outcome != "returned"
            self.failed_count += done.settlement.outcome == "failed"
            report.settled(done, state)
        elif not done.attempt.control.has_succeeded:
            report.stale(done)
        elif done.settlement.id in reply.stale:
            self.settled_count += 1
            report.succeeded_in_transaction(done)
        else:
            report.transaction_left_open(done)


async def settle_all(batch: list[PendingSettlement], together: Send, alone: Send) -> SettleReply:
    """Settle a batch in one call or, if the store raises anything but `StoreError`, one by one.

    One bad settlement must not hold up the others. Called in the portal thread.
    """
    try:
        return await together(batch)
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 (which settlement causes it shows when each is sent alone)
        return await _settle_one_by_one(batch, alone)


async def _settle_one_by_one(batch: list[PendingSettlement], settle: Send) -> SettleReply:
    """Settle one after the other. One that raises is replaced in the batch: it is settled as failed.

    If that raises as well, the error goes up and ends the worker.
    """
    settled: list[SettledJob] = []
    stale: list[UUID] = []
    for at, done in enumerate(batch):
        try:
            reply = await settle([done])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 (of whatever class: this attempt fails by it)
            report.attempt_broken(done.attempt, error)
            failed = Failed(describe(error, ErrorClass.RETRYABLE))
            draw, spent = random.random(), done.settlement.spent  # noqa: S311 (spreads retries)
            settlement = decide_settlement(done.attempt.claim, failed, draw=draw, spent=spent)
            batch[at] = PendingSettlement(done.attempt, settlement)
            reply = await settle([batch[at]])
        settled += reply.settled
        stale += reply.stale
    return SettleReply(tuple(settled), tuple(stale))
