"""The policies facet: rules, overrides, pauses and closes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.layers import Hold, Kind, Override, Subject
from fairlane.store.contract.policies import (
    Difference,
    HoldRequest,
    ListRequest,
    OverrideRequest,
    PolicyView,
    PutRequest,
    ReadRequest,
    SubjectRequest,
    check_hold,
    check_list,
    check_override,
    check_subject,
    is_listed,
)
from fairlane.store.policy import EVERYONE, Policy, packed, unpacked
from fairlane.store.postgres.book import Book, open_book
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.terms import FOREVER, terms


class PostgresPolicies:
    """What is allowed."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("policies", server.schema)

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        """See the contract."""
        check_subject(request, *request.rules)
        differences = []
        async with self._changing(request.rules) as changing:
            for subject, rules in sorted(request.rules.items()):
                before = changing.policy(subject).declared
                if before != rules:
                    differences.append(Difference(subject, before, rules))
                    changing.set(subject, declared=rules)
        return tuple(differences)

    async def override(self, request: OverrideRequest) -> PolicyView:
        """See the contract."""
        check_override(request)
        async with self._changing((request.subject,)) as changing:
            override = Override(
                change=request.change,
                who=request.who,
                note=request.note,
                set_at=changing.now,
                until=request.until,
            )
            changing.set(request.subject, override=override)
        return changing.view(request.subject)

    async def reset(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        return await self._end(request, override=None)

    async def pause(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        return await self._hold(request, "paused")

    async def resume(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        return await self._end(request, paused=None)

    async def close(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        return await self._hold(request, "closed")

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        return await self._end(request, closed=None)

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        """See the contract."""
        check_subject(request, *request.subjects)
        async with self._server.transaction() as connection:
            book = await open_book(self._server, connection, request.subjects)
        return {subject: book.view(subject) for subject in request.subjects}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        """See the contract."""
        check_list(request)
        found: list[PolicyView] = []
        after = request.after
        async with reading(self._server, in_order=True) as connection:
            while len(found) < request.limit:
                names = await self._names(connection, request.kind, after, request.limit)
                if not names:
                    break
                subjects = [Subject(request.kind, name) for name in names]
                book = await open_book(self._server, connection, subjects)
                found += [one for one in map(book.view, subjects) if is_listed(one, request)]
                after = names[-1]
        return tuple(found[: request.limit])

    async def _names(self, connection: Connection, kind: Kind, after: str, most: int) -> Sequence[str]:
        """Give the next names, at most so many, from both where policies and where jobs are."""
        rows = await connection.fetch(self._sql.named, kind.value, after, most)
        with_jobs = {Kind.TENANT: self._sql.tenants, Kind.QUEUE: self._sql.queues, Kind.TASK: self._sql.tasks}
        if kind in with_jobs:
            rows += await connection.fetch(with_jobs[kind], after, most)
        return sorted({row[0] for row in rows})[:most]

    async def _hold(self, request: HoldRequest, verb: str) -> PolicyView:
        check_hold(request)
        async with self._changing((request.subject,)) as changing:
            hold = Hold(who=request.who, reason=request.reason, set_at=changing.now, until=request.until)
            changing.set(request.subject, **{verb: hold})
        return changing.view(request.subject)

    async def _end(self, request: SubjectRequest, **nothing: None) -> PolicyView:
        check_subject(request, request.subject)
        async with self._changing((request.subject,)) as changing:
            changing.set(request.subject, **nothing)
        return changing.view(request.subject)

    @asynccontextmanager
    async def _changing(self, subjects: Iterable[Subject]) -> AsyncIterator[_Changing]:
        """Change policies in one step; others wait until it is committed, so that marks keep their order."""
        async with self._server.transaction() as connection:
            await connection.execute(self._sql.lock, f"{self._server.schema} policies")
            book = await open_book(self._server, connection, subjects)
            changing = _Changing(connection, self._sql, book)
            yield changing
            await changing.write()
        self._server.hint(changing.queues)


class _Changing:
    """One change of policies: what was known, what is new, and what follows from it."""

    def __init__(self, connection: Connection, sql: Any, book: Book) -> None:
        self._connection = connection
        self._sql = sql
        self._book = book
        self._changed: set[Subject] = set()
        self._freeing: set[Subject] = set()
        self.queues: tuple[str, ...] = ()

    @property
    def now(self) -> Instant:
        return self._book.now

    def policy(self, subject: Subject) -> Policy:
        return self._book.policy(subject)

    def view(self, subject: Subject) -> PolicyView:
        return self._book.view(subject)

    def set(self, subject: Subject, **values: object) -> None:
        """Put values in the place of those before."""
        self._book.known[subject] = msgspec.structs.replace(self.policy(subject), **values)
        self._changed.add(subject)
        if "closed" not in values:  # a close holds nobody who is in already
            self._freeing.add(subject)

    async def write(self) -> None:
        """Store it, what follows from it, and the marks by which queues wake what was held."""
        if not self._changed:
            return
        run, sql = self._connection.execute, self._sql
        names = _columns(self._changed)
        blobs = zip(*(packed(self.policy(one)) for one in sorted(self._changed)), strict=True)
        await run(sql.write, *names, *map(list, blobs))
        await run(sql.holds_out, *names)
        await run(sql.holds_in, *self._holds())
        await self._write_terms()
        marked = _columns(self._freeing)
        await run(sql.mark, self.now, *marked)
        self.queues = tuple(row[0] for row in await self._connection.fetch(sql.concerned, *marked))

    def _holds(self) -> list[list[Any]]:
        held = [
            (verb, one.kind.value, one.name, _end_of(hold), hold.reason.replace("\0", ""))
            for one in sorted(self._changed)
            for verb in ("paused", "closed")
            if (hold := getattr(self.policy(one), verb)) is not None
        ]
        return [list(column) for column in zip(*held, strict=True)] or [[], [], [], [], []]

    async def _write_terms(self) -> None:
        stale = {subject: self.policy(subject) for subject in self._changed}
        if EVERYONE in stale:
            for name, *row in await self._connection.fetch(self._sql.leaning):
                stale[Subject(Kind.TENANT, name)] = unpacked(Kind.TENANT, row)
        everyone = self.policy(EVERYONE)
        rows = [term for subject, policy in stale.items() for term in terms(subject, policy, everyone)]
        await self._connection.execute(self._sql.terms_out, *_columns(stale))
        await self._connection.execute(self._sql.terms_in, msgspec.json.encode(rows).decode())


def _columns(subjects: Iterable[Subject]) -> tuple[list[str], list[str]]:
    ordered = sorted(subjects)
    return [one.kind.value for one in ordered], [one.name for one in ordered]


def _end_of(hold: Hold) -> Instant:
    return FOREVER if hold.until is None else hold.until
