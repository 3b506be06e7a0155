"""Measure dead letters in a large store: list, filter, group, and run many of them again (S75)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from benchmarks.measured_store import MeasuredStore, seconds
from fairlane import Fairlane
from fairlane.lab.bench.driver import ALL
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.retry.decision import PermanentFailure
from fairlane.store.contract.dead import DeadRequest, ReviewRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

CAUSES: Final = 10
TENANTS: Final = 50
QUEUES: Final = 3
ROUNDS: Final = 5
CLAIMED: Final = 500


async def fill(bench: MeasuredStore, letters: int) -> None:
    """Let jobs fail for a tenth each of the causes, and decide about a fifth of them."""
    for cause in range(CAUSES):
        queue = f"q{cause % QUEUES}"
        for start in range(0, letters // CAUSES, 1_000):
            numbers = range(start, min(letters // CAUSES, start + 1_000))
            await bench.enqueue(*(bench.new(f"t{number % TENANTS}", queue=queue) for number in numbers))
            for _ in range(0, len(numbers), CLAIMED):
                failure = Failure(ErrorClass.NON_RETRYABLE, f"Cause{cause}Error", f"no order {start}")
                await bench.settle(await bench.claim(CLAIMED, queue), PermanentFailure(failure))
    cursor: str | None = None
    for _ in range(letters // 5 // MAX_PAGE_SIZE):
        page = await bench.store.dead.find(DeadRequest(scope=ALL, limit=MAX_PAGE_SIZE, cursor=cursor))
        ids = tuple(one.job.id for one in page.letters)
        await bench.store.dead.review(ReviewRequest(scope=ALL, ids=ids, action="resolve", who="bench"))
        cursor = page.cursor


async def measure(place: str, letters: int, again: int, number: int = 0) -> dict[str, Any]:
    """Time every look some times, then run `again` of one cause again; return median and slowest."""
    bench = MeasuredStore(place, f"letters{number}")
    await bench.store.upkeep.migrate()
    found: dict[str, Any] = {"letters": letters, "fill_s": await seconds(lambda: fill(bench, letters))}
    app = Fairlane(bench.url, config={})
    found["looks"] = {name: await _timed(app, look) for name, look in LOOKS.items()}
    before = time.perf_counter()
    run = await app.dead.areprocess_all(fingerprint=_fingerprint(0), limit=again)
    found["again"] = {"jobs": run.done, "seconds": time.perf_counter() - before}
    await app.aclose()
    await bench.store.upkeep.aclose()
    return found


async def _timed(app: Fairlane, look: Callable[[Fairlane], Awaitable[int]]) -> dict[str, float]:
    times: list[float] = []
    answer = 0
    for _ in range(ROUNDS):
        before = time.perf_counter()
        answer = await look(app)
        times.append(1e3 * (time.perf_counter() - before))
    median = sorted(times)[ROUNDS // 2]
    return {"best_ms": min(times), "median_ms": median, "slowest_ms": max(times), "found": answer}


def _fingerprint(cause: int) -> str:
    failure = Failure(ErrorClass.NON_RETRYABLE, f"Cause{cause}Error", "no order 0")
    return marked("noop", failure).fingerprint


async def _find(app: Fairlane, **filters: Any) -> int:
    """Look for a page as a person does: on, until it is full."""
    return len([letter async for letter in app.dead.aeach(limit=50, **filters)])


async def _group(app: Fairlane, **filters: Any) -> int:
    return len(await app.dead.agroups(**filters))


async def _count(app: Fairlane) -> int:
    return sum((await app.dead.acount()).values())


LOOKS: Final[dict[str, Callable[[Fairlane], Awaitable[int]]]] = {
    "list the newest 50": _find,
    "list 50 that await a decision": lambda app: _find(app, review="pending"),
    "list 50 of a cause": lambda app: _find(app, fingerprint=_fingerprint(0)),
    "list 50 of a cause that await a decision": lambda app: _find(
        app, fingerprint=_fingerprint(0), review="pending"
    ),
    "list 50 of a tenant": lambda app: _find(app, tenant="t7"),
    "list 50 of a queue": lambda app: _find(app, queue="q1"),
    "list 50 that were acknowledged": lambda app: _find(app, acknowledged=True),
    "group all": _group,
    "group what awaits a decision": lambda app: _group(app, review="pending"),
    "group a cause": lambda app: _group(app, fingerprint=_fingerprint(0)),
    "count by review": _count,
}
"""What people ask, each with how much it finds."""
