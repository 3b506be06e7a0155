"""Count what a settlement asks of a server: of jobs that succeed, that are tried again, and that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import asyncpg
from redis.asyncio.connection import AbstractConnection

from benchmarks.measured_store import MeasuredStore
from fairlane.lab.bench.driver import SUCCEEDED
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.retry.decision import AttemptResult, Failed, PermanentFailure

JOBS: Final = 50
"""How many are settled at once."""

ENDINGS: Final[dict[str, AttemptResult]] = {
    "succeed": SUCCEEDED,
    "are tried again": Failed(Failure(ErrorClass.RETRYABLE, "ConnectionError", "mail.example.org refused")),
    "die": PermanentFailure(Failure(ErrorClass.NON_RETRYABLE, "ValueError", "no order")),
}

_SENDING: Final = {
    asyncpg.Connection: ("fetch", "fetchrow", "fetchval", "execute"),
    AbstractConnection: ("send_packed_command",),
}
"""What a driver sends one request with, and waits for the answer of."""

_WAKE_UP: Final = "pg_notify"
"""A wake-up travels by itself, some milliseconds after its enqueue: no settlement waits for it."""


async def measure(place: str, name: str) -> dict[str, int]:
    """Settle as many jobs with each ending; return the requests of each."""
    bench = MeasuredStore(place, name)
    await bench.store.upkeep.migrate()
    found: dict[str, int] = {}
    for warm in (True, False):  # at first the server is sent what it knows afterwards
        for ending, result in ENDINGS.items():
            await bench.enqueue(*(bench.new("t0") for _ in range(JOBS)))
            claims = await bench.claim(JOBS)
            with counted() as requests:
                await bench.settle(claims, result)
            if not warm:
                found[ending] = len(requests)
    await bench.store.upkeep.aclose()
    return found


@contextmanager
def counted() -> Iterator[list[str]]:
    """Note every request that a driver sends meanwhile."""
    sent: list[str] = []
    real: list[tuple[Any, str, Any]] = []
    for driver, names in _SENDING.items():
        for name in names:
            real.append((driver, name, getattr(driver, name)))
            setattr(driver, name, _counting(getattr(driver, name), name, sent))
    try:
        yield sent
    finally:
        for driver, name, method in real:
            setattr(driver, name, method)


def _counting(real: Callable[..., Any], name: str, sent: list[str]) -> Callable[..., Any]:
    def send(*arguments: Any, **options: Any) -> Any:
        if not any(isinstance(one, str) and _WAKE_UP in one for one in arguments):
            sent.append(name)
        return real(*arguments, **options)

    return send
