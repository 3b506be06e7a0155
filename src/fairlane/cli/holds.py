"""`fairlane pause`, `close`, `resume` and `drain`: stop what is claimed or taken in, and let it go on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

import click

from fairlane import Fairlane
from fairlane.cli import kinds
from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.moments import iso, moment
from fairlane.cli.session import Session, now_of
from fairlane.cli.terms import about, end_of, ending, note, required_note, subject_of
from fairlane.model.instants import Instant
from fairlane.model.layers import Kind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import HoldRequest, PolicyView, ReadRequest, SubjectRequest

F = TypeVar("F", bound=Callable[..., Any])

_ALL: Final = Scope.all()
_HOLDABLE: Final = (Kind.QUEUE, Kind.TENANT, Kind.TASK)


@click.command(cls=Command)
@about(*_HOLDABLE)
@required_note
@ending
@click.pass_obj
def pause(session: Session, /, **said: Any) -> None:
    """Claim nothing more of a queue, tenant or task.

    What runs goes on, new jobs are taken in, due times and expiry go on. A later pause replaces this one.
    """
    _hold(session, "paused", **said)


@click.command(cls=Command)
@about(*_HOLDABLE)
@required_note
@ending
@click.pass_obj
def close(session: Session, /, **said: Any) -> None:
    """Take in no new jobs of a queue, tenant or task.

    What is there goes on. An enqueue is refused, with the note.
    """
    _hold(session, "closed", **said)


def _hold(
    session: Session,
    word: Literal["paused", "closed"],
    *,
    kind: str,
    name: str,
    note: str,
    until: datetime | None,
    lasting: float | None,
) -> None:
    subject = subject_of(kind, name)

    async def work(app: Fairlane) -> tuple[Instant | None, Instant]:
        now = await now_of(app)
        end = end_of(until, lasting, now)
        policies = app.client.store.policies
        verb = policies.pause if word == "paused" else policies.close
        await verb(HoldRequest(scope=_ALL, subject=subject, who=session.who, reason=note, until=end))
        return end, now

    end, now = session.run(work)
    ends = f"until {moment(end, now)}" if end is not None else f"until `fairlane resume {subject}`"
    answer = {"kind": kind, "name": name, "answer": word, "until": iso(end), "who": session.who, "note": note}
    session.output.answer(f"{subject} is {word}, {ends}.", answer)


@click.command(cls=Command)
@about(*_HOLDABLE)
@note
@click.pass_obj
def resume(session: Session, kind: str, name: str, *, note: str) -> None:
    """End a pause and a close of a queue, tenant or task."""
    subject = subject_of(kind, name)
    request = SubjectRequest(scope=_ALL, subject=subject, who=session.who, note=note)

    async def work(app: Fairlane) -> PolicyView:
        policies = app.client.store.policies
        before = (await policies.read(ReadRequest(scope=_ALL, subjects=(subject,))))[subject]
        await policies.resume(request)
        await policies.reopen(request)
        return before

    before = session.run(work)
    ended = [
        word for word, hold in (("paused", before.paused), ("closed", before.closed)) if hold is not None
    ]
    text = (
        f"{subject} is no longer {' and '.join(ended)}."
        if ended
        else f"{subject} was neither paused nor closed."
    )
    session.output.answer(text, {"kind": kind, "name": name, "ended": ended})


def draining(command: F) -> F:
    """Take how to drain, why, and for how long to wait."""
    by = click.option(
        "--by",
        type=click.Choice(["pause", "close"]),
        default="pause",
        show_default=True,
        help="Stop claims and wait for what runs; or take in nothing new and wait until all is done.",
    )
    timeout = click.option("--timeout", type=kinds.DURATION, help="Give up waiting after so long.")
    return required_note(by(timeout(command)))


def drain_one(
    session: Session,
    kind: Kind,
    name: str,
    *,
    note: str,
    by: Literal["pause", "close"],
    timeout: float | None,
) -> None:
    """Pause or close a queue, tenant or task, wait, and say how it ended."""
    session.output.remark(f"Waiting for {kind.value} {name}; Ctrl-C ends the wait, not the {by}.")

    async def work(app: Fairlane) -> bool:
        spaces = {Kind.QUEUE: app.queues, Kind.TENANT: app.tenants, Kind.TASK: app.tasks}
        return await spaces[kind].adrain(name, reason=note, by=by, timeout=timeout, who=session.who)

    is_empty = session.run(work)
    answer = "drained" if is_empty else "still busy"
    session.output.answer(
        f"{kind.value} {name} is {answer}; `fairlane resume {kind.value} {name}` lets it go on.",
        {kind.value: name, "answer": answer},
    )
    if not is_empty:
        raise click.exceptions.Exit(Exit.REFUSED)


@click.command(cls=Command)
@click.argument("queue", type=kinds.QUEUE)
@draining
@click.pass_obj
def drain(session: Session, /, queue: str, **said: Any) -> None:
    """Pause or close a queue, and wait until nothing of it runs.

    It stays paused or closed afterwards, also when the wait is given up (exit code 1) or interrupted. For a
    tenant or a task there are `fairlane tenants drain` and `fairlane tasks drain`.
    """
    drain_one(session, Kind.QUEUE, queue, **said)
