"""Fill a store with everything that a file can hold, and record it: `python -m tests.migrations.filling`.

Run once for each version of the schema, with the code of that version, before the next one is written. It
makes `version_N.sql`, the file as text, and `version_N.json`, what the contract says of it.
"""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import apsw.shell
import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.job import Progress
from fairlane.model.journal.entries import JournalName
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    QueueRules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.model.retry.decision import Succeeded
from fairlane.model.review import ReviewAction
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.contract.registry import LeadRequest, TaskRecord
from fairlane.store.opening import open_store
from tests.contract.world import ALL, HANDED_BACK, OPERATION, World, failed, payload, ruined
from tests.oracle.clock import DrivenClock

FOLDER = Path(__file__).parent

JOURNALS: Final[tuple[JournalName, ...]] = ("audit", "events")

SUBJECTS = (
    Subject(SubjectKind.QUEUE, "default"),
    Subject(SubjectKind.QUEUE, "timed"),
    Subject(SubjectKind.TENANT, "*"),
    Subject(SubjectKind.TENANT, "paused"),
    Subject(SubjectKind.TENANT, "capped"),
    Subject(SubjectKind.TENANT, "slow"),
    Subject(SubjectKind.TENANT, "closed"),
    Subject(SubjectKind.TASK, "gated"),
    Subject(SubjectKind.TASK, "rated"),
    Subject(SubjectKind.GATE, "narrow"),
)
"""Subjects with a policy of their own."""


async def fill(world: World) -> None:
    """Bring jobs into every state, and use everything that can block them."""
    await _declare(world)
    await _finish_some(world)
    await _review_some(world)
    await _hold_some(world)
    await _leave_some_waiting(world)


async def _declare(world: World) -> None:
    await world.put(
        {
            Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(waiting=500), max_waiting=10_000),
            Subject(SubjectKind.QUEUE, "timed"): QueueRules(cost="seconds"),
            Subject(SubjectKind.TENANT, "*"): TenantRules(labels={"plan": "free"}),
            Subject(SubjectKind.TENANT, "capped"): TenantRules(
                weight=2.5, limits={"default": Limits(running=1)}
            ),
            Subject(SubjectKind.TENANT, "slow"): TenantRules(limits={"*": Limits(rate=Rate(1, "hour"))}),
            Subject(SubjectKind.TASK, "gated"): TaskRules(gate="narrow"),
            Subject(SubjectKind.TASK, "rated"): TaskRules(rate=Rate(1, "hour")),
            Subject(SubjectKind.GATE, "narrow"): GateRules(limit=2),
        }
    )
    await world.override(SubjectKind.GATE, "narrow", PolicyChange(limit=1), world.now + 30 * 86_400 * SECOND)
    await world.override(SubjectKind.TENANT, "capped", PolicyChange(weight=0.5))
    await world.close(SubjectKind.TENANT, "closed")
    await world.register(
        "w1", TaskRecord(name="noop", queue="default"), TaskRecord(name="gated", queue="default")
    )
    await world.register("w2")
    await world.beat("w1")
    await world.store.registry.lead(LeadRequest(scope=ALL, worker="w1", name="duties", lease=60 * SECOND))


async def _finish_some(world: World) -> None:
    await world.bring_to(State.SUCCEEDED, "acme", tags=("red", "ü"), correlation_id="c1", priority=5)
    await world.bring_to(State.CANCELLED, "acme", metadata=b'{"a":1}', created_by="ops")
    await world.bring_to(State.DEAD, "acme", payload=payload(text="x" * 300), timeout=60 * SECOND)
    await world.enqueue("acme", idempotency_key="order-1", fingerprint=b"f1")
    await world.settle(await world.claim_one(), Succeeded(b'{"v":1,"value":42}'))
    await world.enqueue("globex", max_attempts=2)
    for _ in range(2):
        await world.run(failed(ErrorClass.TRANSIENT, "no route"))
        world.advance(2)
    await world.enqueue("globex", expires_in=SECOND)
    world.advance(1)
    await world.expire()
    for number in range(3):  # an estimate of how long the task runs, and a clock that was corrected
        await world.enqueue("acme", queue="timed", task="crunch", priority=number)
        claim = await world.claim_one("timed")
        world.advance(3)
        await world.settle(claim)
    lost = await world.bring_to(State.RUNNING, "globex")
    await world.lose()
    again = await world.claim_one()
    assert again.job.id == lost.job.id
    await world.settle(again, failed())  # delayed, and no longer suspect
    condemned = await world.enqueue("acme")
    await world.condemn(condemned.id, reason="spoilt")


async def _review_some(world: World) -> None:
    """Decide about dead letters in every way, and number some of what that appends to the journals."""
    dead = [letter.job for letter in await world.letters()]
    actions: tuple[ReviewAction, ...] = ("acknowledge", "note", "resolve", "ignore", "discard")
    for action, job in zip(actions, dead, strict=False):
        await world.review(action, job.id, note="as agreed", operation=OPERATION)
    for journal in JOURNALS:
        await world.number(journal, 2)
    again = await world.bring_to(State.DEAD, "globex")
    new = await world.rerun(again.job)
    await world.settle(await world.claim_one(new.queue))
    await world.follow()


async def _hold_some(world: World) -> None:
    """Claim until everything that cannot run is parked, and leave the claims running."""
    for tenant in ("paused", "capped", "slow"):
        await world.enqueue_many(3, tenant)
    for tenant in ("acme", "globex"):
        await world.enqueue_many(2, tenant, task="gated")
        await world.enqueue_many(2, tenant, task="rated")
    await world.pause(SubjectKind.TENANT, "paused")
    claims = {(one.job.tenant, one.job.task): one for one in await world.claim(20)}
    assert claims.keys() == {("capped", "noop"), ("slow", "noop"), ("acme", "gated"), ("acme", "rated")}
    await world.renew(claims["acme", "gated"], progress=Progress(0.5, "half way"))
    await world.cancel(claims["slow", "noop"].job.id, reason="not needed")
    await world.settle(claims["acme", "rated"], HANDED_BACK)
    timed = await world.enqueue("acme", queue="timed", task="crunch")
    assert (await world.claim_one("timed", worker="w2")).job.id == timed.id


async def _leave_some_waiting(world: World) -> None:
    await world.enqueue("acme", delay=3_600 * SECOND, dedup_key="nightly")
    await world.enqueue("acme", dedup_key="d1", idempotency_key="order-2", fingerprint=b"f2")
    await world.enqueue("globex", dedup_key="d2", dedup_until="started", at_most_once=True)
    await world.enqueue("globex", timeout=SECOND, stuck_after=7 * SECOND, on_stuck="requeue")
    parent = await world.enqueue("globex", expires_in=86_400 * SECOND)
    await world.enqueue("globex", parent_id=parent.id, correlation_id=str(parent.id))
    await ruin(world)


async def ruin(world: World) -> None:
    """Make a dead letter in a queue of its own."""
    await world.enqueue("system", queue="quiet")
    await world.settle(await world.claim_one("quiet"), ruined(message="kaput"))


async def sight(world: World) -> dict[str, Any]:
    """Return everything that the contract tells about a store, as plain values."""
    views = {str(one): await world.view(one.kind, one.name) for one in SUBJECTS}
    told = {
        "now": world.now,
        "jobs": {str(job.id): job for job in await world.find_all()},
        "counts": sorted([*key, number] for key, number in (await world.counts()).items()),
        "letters": [_told(letter) for letter in await world.letters()],
        "journals": {name: await world.journal(name) for name in JOURNALS},
        "census": await world.census(),
        "policies": views,
    }
    plain: dict[str, Any] = json.loads(msgspec.json.encode(told))
    return plain


def _told(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as plain values; `review` is one word, as in versions that had no more."""
    return {**msgspec.structs.asdict(letter), "review": letter.review.review, "record": letter.review}


async def main() -> None:
    """Write both files of the current version."""
    clock = DrivenClock()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "fairlane.db"
        store = open_store(f"sqlite:///{file}", clock=clock)
        world = World(store, clock)
        await fill(world)
        await world.check_invariants()
        seen = await sight(world)
        await store.upkeep.aclose()
        db = apsw.Connection(str(file))
        text = io.StringIO()
        apsw.shell.Shell(db=db, stdout=text).process_command(".dump")  # type: ignore[no-untyped-call]
        version, mark = db.pragma("user_version"), db.pragma("application_id")
        db.close()
    lines = [line for line in text.getvalue().splitlines() if not line.startswith(("--", "PRAGMA"))]
    lines += [f"PRAGMA application_id={mark};", f"PRAGMA user_version={version};"]
    (FOLDER / f"version_{version}.sql").write_text("\n".join(lines) + "\n", "utf-8")
    (FOLDER / f"version_{version}.json").write_text(
        json.dumps(seen, indent=1, sort_keys=True) + "\n", "utf-8"
    )


if __name__ == "__main__":
    asyncio.run(main())
