"""Break one promise at a time, in memory, and see which seed of the simulation notices.

``python -m tests.simulation.sabotages`` tries all and prints a table; ``-k fence`` tries some. A sabotage is
the mistake that somebody might make in a store, here made in the oracle, or in the worker itself.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import msgspec

from fairlane.app.dead import deciding
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import record_changes
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.retry import decision
from fairlane.model.scope import Scope
from fairlane.worker import execute, hints
from fairlane.worker.round_trip import RoundTrip
from tests.campaigns.book import commit
from tests.oracle import books as books_module
from tests.oracle import claims as claims_module
from tests.oracle import dead as dead_module
from tests.oracle import jobs as jobs_module
from tests.oracle.books import Books, Flow
from tests.oracle.claims import OracleClaims
from tests.oracle.core import Core
from tests.oracle.dead import OracleDead
from tests.oracle.jobs import OracleJobs
from tests.oracle.policies import OraclePolicies
from tests.simulation.guard_sabotages import GUARD_SABOTAGES
from tests.simulation.page import Findings, Row, write
from tests.simulation.seeds import now_running, quiet, run_seed, seams
from tests.simulation.server import Server

MOST_SEEDS: Final = 2_000

_replace = msgspec.structs.replace
_wrong = patch.object

Patch = Callable[[], AbstractContextManager[Any]]


class Sabotage(NamedTuple):
    """A promise, and the patch that breaks it; without a patch, why it cannot be broken here."""

    promise: str
    patch: Patch | None
    why_not: str = ""


class Finding(NamedTuple):
    """Which seed noticed first, after how many, and what it said."""

    seed: int | None
    said: str


# ── claims and fences ─────────────────────────────────────────────────────────


def _fence_out(verb: str, field: str) -> Patch:
    original = getattr(OracleClaims, verb)

    async def loose(self: OracleClaims, request: Any) -> Any:
        jobs = self._core.books.jobs
        items = tuple(
            _replace(one, fence=jobs[one.id].fence) if one.id in jobs else one
            for one in getattr(request, field)
        )
        return await original(self, _replace(request, **{field: items}))

    return lambda: _wrong(OracleClaims, verb, loose)


def _fence_by_counting() -> AbstractContextManager[Any]:
    original = record_changes.claimed

    def claimed(job: JobRecord, worker: str, lease: int, now: Instant) -> JobRecord:
        return _replace(original(job, worker, lease, now), fence=job.fence + 1)

    return _wrong(claims_module, "claimed", claimed)


def _count_then_claim() -> AbstractContextManager[Any]:
    original = OracleClaims.claim

    async def claim(self: OracleClaims, request: Any) -> Any:
        books = self._core.books
        counted = books.counts.copy()
        books.running = lambda queue, tenant: counted[tenant, queue, State.RUNNING]  # type: ignore[method-assign]
        try:
            return await original(self, request)
        finally:
            del books.running

    return _wrong(OracleClaims, "claim", claim)


def _running_kept() -> AbstractContextManager[Any]:
    original = OracleClaims.reclaim

    async def reclaim(self: OracleClaims, request: Any) -> Any:
        reply = await original(self, request)
        for lost in reply.lost:
            self._core.books.counts[lost.tenant, lost.queue, State.RUNNING] += 1
        return reply

    return _wrong(OracleClaims, "reclaim", reclaim)


def _gate_kept() -> AbstractContextManager[Any]:
    original = Core.end_attempt

    def end_attempt(self: Core, after: JobRecord) -> JobRecord:
        gate = self.books.claim_states[after.id].gate
        if gate is not None:
            self.books.gate_used[gate] += 1
        return original(self, after)

    return _wrong(Core, "end_attempt", end_attempt)


def _repeated_once() -> AbstractContextManager[Any]:
    original = decision.lose_lease

    def lose(job: JobRecord) -> Any:
        return original(_replace(job, at_most_once=False))

    return _wrong(claims_module, "lose_lease", lose)


def _old_place() -> AbstractContextManager[Any]:
    original = record_changes.settled

    def settled(job: JobRecord, settlement: Any, now: Instant, kept: int) -> JobRecord:
        return _replace(original(job, settlement, now, kept), sort_key=job.sort_key)

    return _wrong(claims_module, "settled", settled)


@contextmanager
def _two_steps() -> Iterator[None]:
    """Take a finished job out of the hot home in one step, and put it into its next home in another."""
    original = OracleClaims.settle

    async def settle(self: OracleClaims, request: Any) -> Any:
        reply = await original(self, request)
        jobs = self._core.books.jobs
        moving = [jobs.pop(one.id) for one in reply.settled if is_finished(one.state)]
        await asyncio.sleep(0.02)
        running = now_running()
        caller = next(one for one in running.processes if one.name == request.worker)
        if caller.is_alive and not running.server.is_away:  # who died between the two never does the second
            self._core.books.jobs.update({job.id: job for job in moving})
        return reply

    with _wrong(OracleClaims, "settle", settle), _wrong(Server, "slow_verbs", frozenset({"settle"})):
        yield


# ── turns ─────────────────────────────────────────────────────────────────────


def _clock_forgotten() -> AbstractContextManager[Any]:
    original = Books.refresh_index

    def refresh_index(self: Books, flow: Flow) -> None:
        original(self, flow)
        if not any(True for _ in self.strands(flow)):
            self.tenant_clocks[flow].vt = 0

    return _wrong(Books, "refresh_index", refresh_index)


def _last_first() -> AbstractContextManager[Any]:
    def head(self: Books, strand: Any) -> JobRecord:
        return max((self.jobs[id] for id in self.ready[strand]), key=books_module.order_of)

    return _wrong(Books, "head", head)


def _weights_ignored() -> AbstractContextManager[Any]:
    return _wrong(Books, "stride", lambda *_: 1 << 20)


# ── enqueues and tenants ──────────────────────────────────────────────────────


def _dedup_for_all() -> AbstractContextManager[Any]:
    original = jobs_module.facts_of

    def facts_of(books: Books, job: Any, now: Instant, **options: Any) -> Any:
        held = [id for (_, task, key), id in books.dedup.items() if (task, key) == (job.task, job.dedup_key)]
        return _replace(original(books, job, now, **options), same_dedup=held[0] if held else None)

    return _wrong(jobs_module, "facts_of", facts_of)


def _unscoped(*verbs: str, facet: type = OracleJobs) -> Patch:
    def unscoped(original: Any) -> Any:
        async def ask(self: Any, request: Any) -> Any:
            return await original(self, _replace(request, scope=Scope.all()))

        return ask

    return lambda: patch.multiple(facet, **{verb: unscoped(getattr(facet, verb)) for verb in verbs})


@contextmanager
def _check_then_insert() -> Iterator[None]:
    """Check the keys in one step, and store the jobs in another without looking again."""
    original = OracleJobs.enqueue

    async def enqueue(self: OracleJobs, request: Any) -> Any:
        core = self._core
        before = core.books
        reply = await original(self, request)
        core.books = before
        await asyncio.sleep(0.003)
        made = {one.job.id for one in reply.enqueued if one.is_created}
        for job in request.jobs:
            if job.id in made:
                jobs_module.store_new(core.books, job, core.now())
        core.hint({job.queue for job in request.jobs})
        return reply

    with _wrong(OracleJobs, "enqueue", enqueue), _wrong(Server, "slow_verbs", frozenset({"enqueue"})):
        yield


@contextmanager
def _torn_batch() -> Iterator[None]:
    """Store the first job of a batch in one step and the others in the next."""
    original = OracleJobs.enqueue

    async def enqueue(self: OracleJobs, request: Any) -> Any:
        first = await original(self, _replace(request, jobs=request.jobs[:1]))
        await asyncio.sleep(0.02)
        if len(request.jobs) == 1 or now_running().server.is_away:
            return first
        rest = await original(self, _replace(request, jobs=request.jobs[1:]))
        return _replace(first, enqueued=first.enqueued + rest.enqueued, refused=first.refused + rest.refused)

    with _wrong(OracleJobs, "enqueue", enqueue), _wrong(Server, "slow_verbs", frozenset({"enqueue"})):
        yield


def _override_lost() -> AbstractContextManager[Any]:
    original = OraclePolicies.put

    async def put(self: OraclePolicies, request: Any) -> Any:
        for subject in request.rules:
            self._core.books.overrides.pop(subject, None)
        return await original(self, request)

    return _wrong(OraclePolicies, "put", put)


def _run_again_and_again() -> AbstractContextManager[Any]:
    original = OracleDead._reprocess

    def reprocess(self: OracleDead, request: Any, index: int, item: Any) -> Any:
        self._core.books.reviews.pop(item.id, None)
        return original(self, request, index, item)

    return _wrong(OracleDead, "_reprocess", reprocess)


@contextmanager
def _discard_undone() -> Iterator[None]:
    """Let any decision be followed by any other, in the store and in its callers."""
    with (
        _wrong(dead_module, "may_follow", lambda *_: True),
        _wrong(deciding, "may_follow", lambda *_: True),
    ):
        yield


# ── the worker ────────────────────────────────────────────────────────────────


def _settlement_dropped() -> AbstractContextManager[Any]:
    """Forget what could not be settled, instead of sending it again (S66)."""
    original = RoundTrip._exchange

    async def exchange(self: RoundTrip, batch: Any, claim: Any, finds: int) -> None:
        sent = list(batch)
        batch.clear()
        await original(self, sent, claim, finds)

    return _wrong(RoundTrip, "_exchange", exchange)


TABLE: Final[dict[str, Sabotage]] = {
    "fence-out-of-settle": Sabotage(
        "a settlement with another fence changes nothing", _fence_out("settle", "settlements")
    ),
    "fence-out-of-renew": Sabotage(
        "a renewal with another fence changes nothing", _fence_out("renew", "renewals")
    ),
    "fence-by-counting": Sabotage(
        "a fence grows also when the claim before was lost in a crash of the store", _fence_by_counting
    ),
    "drained-clock-forgotten": Sabotage(
        "a tenant that drains and returns still owes what it was served", _clock_forgotten
    ),
    "credit-for-idling": Sabotage(
        "a tenant that was idle gets no turns for it",
        lambda: _wrong(books_module, "activate", lambda vt, _: vt),
    ),
    "weight-ignored": Sabotage("weights give exact shares", _weights_ignored),
    "count-then-claim": Sabotage("a running limit is exact", _count_then_claim),
    "running-kept-at-reclaim": Sabotage("a reclaim gives the place of a lost claim back", _running_kept),
    "gate-not-released": Sabotage("every ending gives its place at the gate back", _gate_kept),
    "dedup-without-tenant": Sabotage("a de-duplication key is its tenant's own", _dedup_for_all),
    "tenant-filter-out-of-get": Sabotage("a foreign id is an unknown id", _unscoped("get")),
    "tenant-filter-out-of-find": Sabotage("nobody finds what is another's", _unscoped("find")),
    "tenant-filter-out-of-cancel": Sabotage("nobody cancels what is another's", _unscoped("cancel")),
    "idempotency-check-then-insert": Sabotage("a key makes one job", _check_then_insert),
    "history-move-in-two-steps": Sabotage("a settled job is in one home, always", _two_steps),
    "lost-wake-without-poll": Sabotage(
        "a lost hint delays a job, and no more", lambda: _wrong(hints, "MAX_HINT_WAIT", 10**12)
    ),
    "jitter-removed": Sabotage(
        "retries spread", lambda: _wrong(execute, "random", SimpleNamespace(random=lambda: 0.5))
    ),
    "retry-keeps-its-old-place": Sabotage("a retry queues at its own time", _old_place),
    "override-lost-at-restart": Sabotage("an override survives every deploy", _override_lost),
    "at-most-once-repeated": Sabotage("a lost attempt of an at-most-once task is the last", _repeated_once),
    "pause-ignored": Sabotage(
        "nothing is claimed of what is paused", lambda: _wrong(claims_module, "_pause_block", lambda *_: None)
    ),
    "expiry-ignored": Sabotage(
        "nothing starts after its expiry", lambda: _wrong(claims_module, "is_expired", lambda *_: False)
    ),
    "rate-ignored": Sabotage(
        "a rate spaces starts", lambda: _wrong(claims_module, "_rate_block", lambda *_: None)
    ),
    "last-in-first-out": Sabotage("inside a strand the smallest sort key goes first", _last_first),
    "batch-in-two-steps": Sabotage("a batch is there whole or not at all", _torn_batch),
    "letter-run-twice": Sabotage("a dead letter runs again once", _run_again_and_again),
    "discard-undone": Sabotage("what was discarded does not run again", _discard_undone),
    "tenant-filter-out-of-reprocess": Sabotage(
        "nobody runs what is another's again", _unscoped("get", "reprocess", facet=OracleDead)
    ),
    "settlement-dropped": Sabotage("what could not be settled is settled later", _settlement_dropped),
    **{name: Sabotage(*one) for name, one in GUARD_SABOTAGES.items()},
    "slot-decided-by-a-mutex": Sabotage("a slot makes one job", None, "judged by the campaign slots"),
}


def hunt(name: str, most: int = MOST_SEEDS, first: int = 0) -> Finding:
    """Run seeds with a sabotage in place until one notices; inside `seams`."""
    sabotage = TABLE[name].patch
    assert sabotage is not None
    for seed in range(first, first + most):
        with sabotage():
            wrong = run_seed(seed).wrong
        if wrong and not run_seed(seed).wrong:  # what goes wrong anyway is not this sabotage
            return Finding(seed, wrong[0])
    return Finding(None, f"not found in {most} seeds")


def main() -> int:
    """Try them, print the table, and fail if one was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only those whose name holds this word")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS)
    parser.add_argument("--write", action="store_true", help="write the page of all of them anew")
    chosen = parser.parse_args()
    rows: list[Row] = []
    missed = 0
    with seams(), quiet():
        for name, sabotage in TABLE.items():
            if chosen.k not in name:
                continue
            began = time.process_time()
            if sabotage.patch is None:
                found = Finding(None, f"does not apply: {sabotage.why_not}")
            else:
                found = hunt(name, chosen.seeds)
                missed += found.seed is None
            rows.append(Row(name, sabotage.promise, found.seed, found.said[:110]))
            seed = "-" if found.seed is None else found.seed
            print(f"{name:32} {seed:>5} {time.process_time() - began:7.1f} s  {found.said[:110]}", flush=True)
    if chosen.write:
        write(Findings(commit(), tuple(rows)))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
