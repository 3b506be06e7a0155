"""The state machine with dead letters that are reviewed, and with both journals, compared with the oracle."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, get_args
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fairlane.model.failure import ErrorClass
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.model.journal.operations import Operation
from fairlane.model.journal.sealing import seal_all
from fairlane.model.lifecycle.states import Event, State
from fairlane.model.review import Review, ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import (
    DeadLetter,
    DeadRequest,
    DeadTallyRequest,
    DeleteRequest,
    FollowedRun,
    FollowRequest,
    Reprocessing,
    ReprocessReply,
    ReprocessRequest,
    ReviewRequest,
)
from fairlane.store.contract.journal import (
    MAX_ENTRIES,
    EntriesRequest,
    JournalEnd,
    NumberRequest,
    PendingRequest,
    TrimRequest,
)
from tests.contract.world import KEPT_BY_A_NEW_RUN
from tests.properties.machine import ALL, QUEUES, TASKS, StoreMachine, mostly_all, picks

JOURNALS: Final[tuple[JournalName, ...]] = get_args(JournalName)
OPERATION: Final = Operation(action="machine.steer", actor="ann", origin="tests", note="so")

actions = st.sampled_from(get_args(ReviewAction))
dead_filters = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(QUEUES),
        "task": st.sampled_from(TASKS),
        "error_class": st.sampled_from((ErrorClass.RETRYABLE, ErrorClass.CRASH)),
        "review": st.sampled_from(get_args(Review)),
        "is_acknowledged": st.booleans(),
    },
)


class DeadLetterMachine(StoreMachine):
    """Decides about dead letters, runs them again, and numbers what happened."""

    def teardown(self) -> None:
        """Compare what both journals still hold, and then everything else."""
        try:
            for journal in JOURNALS:
                self._number(journal)
        finally:
            super().teardown()

    def _dead(self, picked: list[int]) -> list[JobRecord]:
        """Pick dead jobs of the oracle, and rarely one that is not dead."""
        jobs = sorted(self._snapshot().values(), key=lambda job: (job.state is not State.DEAD, job.id))
        dead = [job for job in jobs if job.state is State.DEAD] or jobs
        return [(jobs if number % 7 == 0 else dead)[number % len(dead)] for number in picked if jobs]

    # ── rules: who acts ───────────────────────────────────────────────────────

    @rule(is_person=st.booleans())
    def act(self, is_person: bool) -> None:
        """Let what follows be done by a person, or by nobody who is noted."""
        self.operation = OPERATION if is_person else None

    # ── rules: dead letters ───────────────────────────────────────────────────

    @precondition(lambda self: self.ids)
    @rule(
        picked=picks,
        scope=mostly_all,
        action=actions,
        note=st.sampled_from(("", "n")),
    )
    def review(self, picked: list[int], scope: Scope, action: ReviewAction, note: str) -> None:
        """Do something about some letters."""
        ids = tuple(job.id for job in self._dead(picked))
        request = ReviewRequest(
            scope=scope, ids=ids, action=action, who="ann", note=note, operation=self.operation
        )
        self.both(lambda s: s.dead.review(request))

    @precondition(lambda self: self.ids)
    @rule(
        picked=picks,
        scope=mostly_all,
        queue=st.sampled_from((None, None, *QUEUES)),
        key=st.sampled_from((None, "k1", "#r1", "#r1")),
    )
    def reprocess(self, picked: list[int], scope: Scope, queue: str | None, key: str | None) -> None:
        """Run some letters again, with keys that may be taken."""
        items = tuple(self._again(job, queue, key) for job in self._dead(picked))
        request = ReprocessRequest(scope=scope, items=items, who="ann", operation=self.operation)
        replies: tuple[ReprocessReply, ...] = self.both(lambda s: s.dead.reprocess(request))
        for reply in replies:
            if reply.answer == "reprocessed" and reply.job is not None:
                self.ids.append(reply.job)
                self.visits.transitions[None, Event.ENQUEUE] += 1

    def _again(self, dead: JobRecord, queue: str | None, key: str | None) -> Reprocessing:
        kept: dict[str, Any] = {name: getattr(dead, name) for name in KEPT_BY_A_NEW_RUN}
        if queue is not None:
            kept["queue"] = queue
        if key == "#r1":
            key = f"{dead.idempotency_key}#r1"
        self.number += 1
        new = NewJob(
            id=UUID(int=self.number),
            tenant=dead.tenant,
            parent_id=dead.id,
            idempotency_key=key,
            fingerprint=b"f1",
            **kept,
        )
        return Reprocessing(dead.id, dead.checksum, new)

    @precondition(lambda self: self.ids)
    @rule(picked=picks, scope=mostly_all)
    def delete(self, picked: list[int], scope: Scope) -> None:
        """Delete some letters."""
        ids = tuple(dict.fromkeys(job.id for job in self._dead(picked)))
        request = DeleteRequest(scope=scope, ids=ids, operation=self.operation)
        self.both(lambda s: s.dead.delete(request))

    @rule(scope=mostly_all)
    def follow(self, scope: Scope) -> None:
        """Let all letters learn how their new jobs have ended."""
        self.both(lambda s: _follow_all(s, scope))

    @rule(scope=mostly_all, filters=dead_filters, limit=st.sampled_from((1, 3, 50)))
    def read_letters(self, scope: Scope, filters: dict[str, Any], limit: int) -> None:
        """Page through the letters that match, and count them."""
        self.both(lambda s: _letters(s, DeadRequest(scope=scope, limit=limit, **filters)))
        self.both(lambda s: _dead_tallies(s, DeadTallyRequest(scope=scope, **filters)))

    # ── rules: journals ───────────────────────────────────────────────────────

    @rule(journal=st.sampled_from(JOURNALS))
    def number_all(self, journal: JournalName) -> None:
        """Number what waits in a journal."""
        self._number(journal)

    def _number(self, journal: JournalName) -> None:
        self.both(lambda s: _number_all(s, journal))

    @rule(journal=st.sampled_from(JOURNALS), scope=mostly_all)
    def read_journal(self, journal: JournalName, scope: Scope) -> None:
        """Read what waits and what has numbers, under any scope."""
        self.both(lambda s: _journal(s, journal, scope))

    @rule(journal=st.sampled_from(JOURNALS))
    def trim(self, journal: JournalName) -> None:
        """Delete all numbered entries."""
        self.both(lambda s: _trim_all(s, journal))


async def _letters(store: Store, request: DeadRequest) -> tuple[DeadLetter, ...]:
    """Page to the end. Stores may cut pages differently."""
    page = await store.dead.find(request)
    letters = page.letters
    while page.cursor is not None:
        page = await store.dead.find(msgspec.structs.replace(request, cursor=page.cursor))
        letters += page.letters
    return letters


async def _dead_tallies(store: Store, request: DeadTallyRequest) -> list[str]:
    """Count what matches, in one order. One page holds all of these."""
    return sorted(map(repr, (await store.dead.tally(request)).tallies))


async def _follow_all(store: Store, scope: Scope) -> list[FollowedRun]:
    """Make as many passes as it takes."""
    found: list[FollowedRun] = []
    while True:
        reply = await store.dead.follow(FollowRequest(scope=scope))
        found += reply.followed
        if not reply.is_partial:
            return sorted(found, key=lambda run: run.id)


def _facts(journal: JournalName, entries: list[NewEntry]) -> object:
    """Return what must be equal: of the audit everything, of events how often each happened.

    A store may make several steps of one call, each with an event of its own.
    """
    if journal == "audit":
        return sorted(map(repr, entries))
    sums: Counter[tuple[str, str | None, str]] = Counter()
    for entry in entries:
        sums[entry.kind, entry.tenant, entry.subject] += entry.count
    return sums


async def _number_all(store: Store, journal: JournalName) -> object:
    """Number what waits; say what it was, and whether that continued where it had ended."""
    reply = await store.journal.pending(PendingRequest(scope=ALL, journal=journal))
    entries = seal_all(reply.entries, reply.end.last, b"", None)
    taken = tuple(one.place for one in reply.entries)
    request = NumberRequest(
        scope=ALL,
        journal=journal,
        revision=reply.end.revision,
        taken=taken,
        entries=entries,
        memory=b"%d" % reply.end.revision,
    )
    is_done = await store.journal.number(request)
    is_repeated = await store.journal.number(request)
    end = (await store.journal.pending(PendingRequest(scope=ALL, journal=journal, limit=0))).end
    return (
        is_done,
        is_repeated,
        end.revision,
        end.memory,
        end.last - reply.end.last == len(entries),
        _facts(journal, [one.entry for one in entries]),
    )


async def _journal(store: Store, journal: JournalName, scope: Scope) -> object:
    """Read a journal in both directions; numbers are a store's own."""
    reply = await store.journal.pending(PendingRequest(scope=scope, journal=journal))
    found: dict[bool, list[Entry]] = {}
    for backwards in (False, True):
        request = EntriesRequest(scope=scope, journal=journal, backwards=backwards, limit=MAX_ENTRIES)
        found[backwards] = list((await store.journal.entries(request)).entries)
    return (
        found[False] == found[True][::-1],
        _facts(journal, [one.entry for one in found[False]]),
        _facts(journal, [one.entry for one in reply.entries]),
        reply.end.revision,
        reply.end.memory,
    )


async def _trim_all(store: Store, journal: JournalName) -> JournalEnd:
    """Delete all numbered entries, and return the end without its last number, which is a store's own."""
    end = (await store.journal.pending(PendingRequest(scope=ALL, journal=journal, limit=0))).end
    request = TrimRequest(
        scope=ALL, journal=journal, revision=end.revision, up_to=end.last, memory=end.memory
    )
    assert await store.journal.trim(request)
    end = (await store.journal.pending(PendingRequest(scope=ALL, journal=journal, limit=0))).end
    return msgspec.structs.replace(end, last=0)
