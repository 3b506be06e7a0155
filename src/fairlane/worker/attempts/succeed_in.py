"""Settle an attempt inside its handler's own transaction (S63). Commits nothing: the handler does."""

from __future__ import annotations

from typing import Any, Final

from fairlane.app.client import Client
from fairlane.model.errors import ClaimLost
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import SettleRequest
from fairlane.worker.attempts.live_attempts import StoppableAttempt
from fairlane.worker.attempts.results import encode_or_drop
from fairlane.worker.attempts.settlement import settlement_of

_NOTHING: Final = Succeeded()


async def succeed_in(
    client: Client, worker: str, attempt: StoppableAttempt, connection: Any, result: Any
) -> None:
    """Let an attempt succeed when a transaction commits; `ClaimLost` if another worker owns the claim.

    A result that cannot be stored is dropped or, if the task says so, raises `Unencodable` (S34). Nobody
    tells the worker what became of the transaction: it asks the store when the handler has ended.
    """
    ending = _NOTHING
    if result is not None and attempt.declared.keep_result:
        is_dropped = attempt.declared.on_bad_result == "drop"
        ending = encode_or_drop(result) if is_dropped else Succeeded(encode_result(result))
    tail = attempt.control.tail
    log = None if tail is None else tail.text()
    settlement = settlement_of(attempt, ending, draw=0.0, log=log)
    kept = client.settings.retention.attempts
    request = SettleRequest(scope=Scope.all(), worker=worker, settlements=(settlement,), attempts_kept=kept)
    reply = await client.connection_store.claims.settle_in(connection, request)
    if reply.stale:
        raise ClaimLost(attempt.claim.job.id, attempt.claim.job.attempt)
    attempt.control.has_succeeded = True
