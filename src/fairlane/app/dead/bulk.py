"""Change all dead letters that match, in passes that go on from a cursor (S75).

Each letter is changed in one step of the store. So a bulk action that was killed can be repeated, and changes
no letter twice. Letters of jobs that die after its start are left alone: the passes go from
the latest death to the oldest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from fairlane.app.admin.bulk_entries import BulkAction, audited
from fairlane.app.client import Client
from fairlane.app.dead.causes import count_matches
from fairlane.app.dead.letter_json import result_json
from fairlane.app.dead.reading import STEP
from fairlane.app.dead.reprocessing import new_run, reprocess_error, stands
from fairlane.app.dead.views import BulkResult, RefusedLetter
from fairlane.model.errors import WrongState
from fairlane.model.review import ReviewAction
from fairlane.store.contract.dead import (
    DeadFiltered,
    DeadLetter,
    DeadRequest,
    DeadTallyRequest,
    DeleteRequest,
    Reprocessing,
    ReprocessReply,
    ReprocessRequest,
    ReviewRequest,
)
from fairlane.store.contract.jobs import MAX_BATCH_BYTES

MOST_EXAMPLES: Final = 10
"""How many of the refused letters a result names."""

OnProgress: TypeAlias = Callable[[BulkResult], None]
Pass: TypeAlias = Callable[[Sequence[DeadLetter]], Awaitable[list[RefusedLetter]]]
"""Does something about letters, and returns those that it was refused for."""


class BulkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All letters that match these filters, at most `limit`; who hears of each pass, and what is audited."""

    matching: DeadFiltered
    limit: int | None
    on_progress: OnProgress | None
    shown: dict[str, Any]
    action: str
    who: str
    note: str


async def run_bulk(client: Client, plan: BulkPlan, one_pass: Pass) -> BulkResult:
    """Count, then go through all letters that match; audited by an entry at the start and one at the end."""
    filters, store = msgspec.structs.asdict(plan.matching), client.store
    matches = await count_matches(store, DeadTallyRequest(**filters))
    progress = _Progress(matches, plan.limit)
    scope = plan.matching.scope
    bulk = BulkAction(action=plan.action, subject="dead letters", scope=scope, who=plan.who, note=plan.note)
    request: DeadRequest | None = DeadRequest(**filters, limit=STEP)
    async with audited(store, bulk, filter=plan.shown, limit=plan.limit, matches=matches) as end:
        while request is not None and progress.next_step:
            page = await store.dead.find(replace(request, limit=progress.next_step))
            if page.letters:
                progress.add(len(page.letters), await one_pass(page.letters))
                if plan.on_progress is not None:
                    plan.on_progress(progress.result())
            request = None if page.cursor is None else replace(request, cursor=page.cursor)
        result = progress.result(is_over=request is None)
        end.result = result_json(result)
    return result


class _Progress:
    """What has become of the letters so far."""

    def __init__(self, matches: int, limit: int | None) -> None:
        self._matches = matches
        self._limit = limit
        self._looked_at = 0
        self._refused: Counter[str] = Counter()
        self._examples: list[RefusedLetter] = []

    @property
    def next_step(self) -> int:
        """How many letters to read next; 0 once enough are read."""
        return STEP if self._limit is None else min(STEP, self._limit - self._looked_at)

    def add(self, letters: int, refused: list[RefusedLetter]) -> None:
        """Add a pass."""
        self._looked_at += letters
        self._refused.update(one.reason for one in refused)
        self._examples += refused[: MOST_EXAMPLES - len(self._examples)]

    def result(self, *, is_over: bool = False) -> BulkResult:
        """Return the result so far; at the end nothing is left, whoever has taken letters meanwhile."""
        return BulkResult(
            matches=self._matches,
            done=self._looked_at - self._refused.total(),
            refused=dict(self._refused),
            examples=tuple(self._examples),
            left=0 if is_over else max(0, self._matches - self._looked_at),
        )


# ── what a pass does ─────────────────────────────────────────────────────────


def reviewing(client: Client, plan: BulkPlan, action: ReviewAction) -> Pass:
    """Return a pass that decides about letters."""

    async def one_pass(letters: Sequence[DeadLetter]) -> list[RefusedLetter]:
        ids = tuple(letter.job.id for letter in letters)
        request = ReviewRequest(
            scope=plan.matching.scope, ids=ids, action=action, who=plan.who, note=plan.note
        )
        replies = await client.store.dead.review(request)
        return [
            RefusedLetter(one.id, one.review or "gone", str(stands(one.id, one.review or "gone")))
            for one in replies
            if one.answer != "done"
        ]

    return one_pass


def deleting(client: Client, plan: BulkPlan) -> Pass:
    """Return a pass that deletes letters."""

    async def one_pass(letters: Sequence[DeadLetter]) -> list[RefusedLetter]:
        ids = tuple(letter.job.id for letter in letters)
        gone = await client.store.dead.delete(DeleteRequest(scope=plan.matching.scope, ids=ids))
        return [RefusedLetter(id, "gone", f"no job {id}") for id in ids if id not in set(gone)]

    return one_pass


def rerunning(client: Client, plan: BulkPlan, to_queue: str | None) -> Pass:
    """Return a pass that runs dead jobs again."""

    async def one_pass(letters: Sequence[DeadLetter]) -> list[RefusedLetter]:
        items: list[Reprocessing] = []
        refused: list[RefusedLetter] = []
        for letter in letters:
            try:
                items.append(new_run(client, letter, to_queue))
            except WrongState as error:
                refused.append(RefusedLetter(letter.job.id, "unreadable", str(error)))
        for batch in _batches(items):
            request = ReprocessRequest(scope=plan.matching.scope, items=batch, who=plan.who, note=plan.note)
            replies = await client.store.dead.reprocess(request)
            refused += [
                _refused(reply, item)
                for reply, item in zip(replies, batch, strict=True)
                if reply.answer != "reprocessed"
            ]
        return refused

    return one_pass


def _refused(reply: ReprocessReply, item: Reprocessing) -> RefusedLetter:
    match reply.answer:
        case "already":
            return RefusedLetter(item.id, "already", f"job {reply.job} runs in its place")
        case "not_found":
            return RefusedLetter(item.id, "gone", f"no job {item.id}")
        case "refused" if reply.refusal is not None:
            reason = reply.refusal.kind.value
        case "changed":
            reason = "changed"
        case _:
            reason = reply.review or "gone"
    return RefusedLetter(item.id, reason, str(reprocess_error(reply, item)))


def _batches(items: Iterable[Reprocessing]) -> Iterator[tuple[Reprocessing, ...]]:
    """Yield parts whose arguments together are no larger than a batch may be."""
    batch: list[Reprocessing] = []
    size = 0
    for item in items:
        size += len(item.job.payload)
        if batch and size > MAX_BATCH_BYTES:
            yield tuple(batch)
            batch, size = [], len(item.job.payload)
        batch.append(item)
    if batch:
        yield tuple(batch)
