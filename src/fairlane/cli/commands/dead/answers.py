"""Decide about letters one by one and print each outcome, or print the result of a bulk action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import click
import msgspec

from fairlane import BulkResult, Fairlane, Job, JobNotFound, Refused
from fairlane.app.dead.bulk import OnProgress
from fairlane.app.dead.letter_json import result_json
from fairlane.app.redaction import REDACTED
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.dead import result_text
from fairlane.cli.render.output import TableView

NOT_FOUND: Final = "not found"
_TELL_EVERY: Final = 1_000


class LetterAnswer(msgspec.Struct, frozen=True):
    """What became of one dead letter: a word, the job that runs in its place, or why nothing was done."""

    id: UUID
    answer: str
    new_job: str | None = None
    error: str | None = None


_VIEW: Final = TableView[LetterAnswer](
    {"ID": lambda one: str(one.id), "ANSWER": lambda one: one.answer, "NEW JOB": lambda one: one.new_job},
    lambda one: _without_nothing(
        {"id": str(one.id), "answer": one.answer, "new_job": one.new_job, "error": one.error}
    ),
)


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def decide_each(
    invocation: Invocation, ids: Sequence[UUID], decide: Callable[[Fairlane, UUID], Awaitable[object]]
) -> None:
    """Decide about each letter, print the answers, and exit with the worst code.

    The reason of each that was refused follows the table. One letter alone raises its error.
    """

    async def work(app: Fairlane) -> list[LetterAnswer]:
        wanted = list(dict.fromkeys(ids))
        if len(wanted) == 1:
            return [_answer(wanted[0], await decide(app, wanted[0]))]
        return [await _one(app, id, decide) for id in wanted]

    answers = invocation.run(work)
    invocation.output.table(answers, _VIEW)
    for one in answers:
        if one.error is not None and not invocation.is_json:
            invocation.output.note(one.error)
    if any(one.answer == NOT_FOUND for one in answers):
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    if any(one.error is not None for one in answers):
        raise click.exceptions.Exit(Exit.REFUSED)


async def _one(
    app: Fairlane, id: UUID, decide: Callable[[Fairlane, UUID], Awaitable[object]]
) -> LetterAnswer:
    try:
        return _answer(id, await decide(app, id))
    except JobNotFound:
        return LetterAnswer(id, NOT_FOUND)
    except Refused as error:
        return LetterAnswer(id, "refused", error=str(error))


def _answer(id: UUID, answer: object) -> LetterAnswer:
    if isinstance(answer, Job):
        job: Job[Any] = answer  # pyright: ignore[reportUnknownVariableType] (of any result)
        return LetterAnswer(id, "reprocessed" if job.created else "already", str(job.id))
    return LetterAnswer(id, str(answer))


def progress_of(invocation: Invocation) -> OnProgress:
    """Return what tells of a long bulk action, a line for each thousand letters."""
    told = 0

    def tell(result: BulkResult) -> None:
        nonlocal told
        looked_at = result.done + sum(result.refused.values())
        if looked_at // _TELL_EVERY > told and not invocation.is_json:
            told = looked_at // _TELL_EVERY
            invocation.output.note(f"{looked_at:,} of {result.matches:,} …")

    return tell


def print_result(invocation: Invocation, result: BulkResult, done: str) -> None:
    """Print the result of a bulk action; exit code 1 if letters were refused."""
    shown = result_json(result)
    for example in shown["examples"]:
        example["text"] = REDACTED.text(example["text"])
    invocation.output.answer(result_text(result, done), shown)
    if result.refused:
        raise click.exceptions.Exit(Exit.REFUSED)
