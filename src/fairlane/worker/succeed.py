"""Settle an attempt inside its handler's own transaction (S63). Commits nothing: the handler does."""

from __future__ import annotations

from typing import Any, Final

from fairlane.app.client import Client
from fairlane.model.errors import ClaimLost
from fairlane.model.judge import Succeeded, judge
from fairlane.model.payload import encode_result
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import SettleRequest
from fairlane.worker.attempt import Attempt
from fairlane.worker.endings import kept_result

_NOTHING: Final = Succeeded()


async def succeed_in(client: Client, worker: str, attempt: Attempt, connection: Any, result: Any) -> None:
    """Let an attempt succeed with the commit of a transaction; `ClaimLost` if its claim is no longer good.

    A result that cannot be kept is dropped or, if the task wants that, `Unencodable` (S34).

    What becomes of the transaction nobody tells the worker: it asks the store when the handler has ended.
    """
    ending = _NOTHING
    if result is not None and attempt.declared.keep_result:
        is_dropped = attempt.declared.on_bad_result == "drop"
        ending = kept_result(result) if is_dropped else Succeeded(encode_result(result))
    tail = attempt.rein.tail
    log = None if tail is None else tail.text()
    settlement = judge(attempt.claim, ending, draw=0.0, log=log)
    request = SettleRequest(scope=Scope.all(), worker=worker, settlements=(settlement,))
    reply = await client.joining.claims.settle_in(connection, request)
    if reply.stale:
        raise ClaimLost(attempt.claim.job.id, attempt.claim.job.attempt)
    attempt.rein.has_succeeded = True
