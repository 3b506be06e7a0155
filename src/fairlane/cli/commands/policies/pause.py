"""`fairlane pause`, `close`, `resume` and `drain`: stop and continue claims or enqueues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

import click

from fairlane import Fairlane
from fairlane.app.admin.controls import policy_action
from fairlane.app.admin.operations import operation
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.times import timestamp_and_age
from fairlane.cli.shared_options import end_of, note, required_note, subject_arguments, subject_of, with_end
from fairlane.model.instants import Instant, iso
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import HoldRequest, PolicyView, ReadRequest, SubjectRequest

F = TypeVar("F", bound=Callable[..., Any])

_ALL: Final = Scope.all()
_HOLDABLE: Final = (SubjectKind.QUEUE, SubjectKind.TENANT, SubjectKind.TASK)


@click.command(cls=Command)
@subject_arguments(*_HOLDABLE)
@required_note
@with_end
@click.pass_obj
def pause(invocation: Invocation, /, **options: Any) -> None:
    """Stop claiming jobs of a queue, tenant or task.

    Running jobs continue, new jobs are accepted, delays and expiry go on. A later pause replaces this one.
    """
    _hold(invocation, "paused", **options)


@click.command(cls=Command)
@subject_arguments(*_HOLDABLE)
@required_note
@with_end
@click.pass_obj
def close(invocation: Invocation, /, **options: Any) -> None:
    """Refuse new jobs of a queue, tenant or task.

    Jobs that are already stored still run. An enqueue is refused with the note.
    """
    _hold(invocation, "closed", **options)


def _hold(
    invocation: Invocation,
    state: Literal["paused", "closed"],
    *,
    kind: str,
    name: str,
    note: str,
    until: datetime | None,
    duration: float | None,
) -> None:
    subject = subject_of(kind, name)

    async def work(app: Fairlane) -> tuple[Instant | None, Instant]:
        now = await now_of(app)
        end = end_of(until, duration, now)
        policies = app.client.store.policies
        verb = policies.pause if state == "paused" else policies.close
        done = operation(policy_action(subject.kind, "pause" if state == "paused" else "close"), note=note)
        request = HoldRequest(
            scope=_ALL, subject=subject, who=invocation.who, reason=note, until=end, operation=done
        )
        await verb(request)
        return end, now

    end, now = invocation.run(work)
    ends = f"until {timestamp_and_age(end, now)}" if end is not None else f"until `fairlane resume {subject}`"
    answer = {
        "kind": kind,
        "name": name,
        "answer": state,
        "until": iso(end),
        "who": invocation.who,
        "note": note,
    }
    invocation.output.answer(f"{subject} is {state}, {ends}.", answer)


@click.command(cls=Command)
@subject_arguments(*_HOLDABLE)
@note
@click.pass_obj
def resume(invocation: Invocation, kind: str, name: str, *, note: str) -> None:
    """End the pause and the close of a queue, tenant or task."""
    subject = subject_of(kind, name)

    async def work(app: Fairlane) -> PolicyView:
        policies = app.client.store.policies
        before = (await policies.read(ReadRequest(scope=_ALL, subjects=(subject,))))[subject]
        for verb, word in ((policies.resume, "resume"), (policies.reopen, "open")):
            done = operation(policy_action(subject.kind, word), note=note)
            request = SubjectRequest(
                scope=_ALL, subject=subject, who=invocation.who, note=note, operation=done
            )
            await verb(request)
        return before

    before = invocation.run(work)
    ended = [
        state for state, hold in (("paused", before.paused), ("closed", before.closed)) if hold is not None
    ]
    text = (
        f"{subject} is no longer {' and '.join(ended)}."
        if ended
        else f"{subject} was neither paused nor closed."
    )
    invocation.output.answer(text, {"kind": kind, "name": name, "ended": ended})


def drain_options(command: F) -> F:
    """Add the options of a drain: how, why, and how long to wait."""
    by = click.option(
        "--by",
        type=click.Choice(["pause", "close"]),
        default="pause",
        show_default=True,
        help="pause: stop claims and wait for running jobs; close: refuse new jobs and wait until no job is "
        "ready or running.",
    )
    timeout = click.option("--timeout", type=value_types.DURATION, help="Stop waiting after this long.")
    return required_note(by(timeout(command)))


def drain_subject(
    invocation: Invocation,
    kind: SubjectKind,
    name: str,
    *,
    note: str,
    by: Literal["pause", "close"],
    timeout: float | None,
) -> None:
    """Pause or close a queue, tenant or task, wait, and print the result."""
    invocation.output.note(f"Waiting for {kind.value} {name}; Ctrl-C ends the wait, not the {by}.")

    async def work(app: Fairlane) -> bool:
        spaces = {SubjectKind.QUEUE: app.queues, SubjectKind.TENANT: app.tenants, SubjectKind.TASK: app.tasks}
        return await spaces[kind].adrain(name, reason=note, by=by, timeout=timeout, who=invocation.who)

    is_empty = invocation.run(work)
    answer = "drained" if is_empty else "still busy"
    invocation.output.answer(
        f"{kind.value} {name} is {answer}; continue with `fairlane resume {kind.value} {name}`.",
        {kind.value: name, "answer": answer},
    )
    if not is_empty:
        raise click.exceptions.Exit(Exit.REFUSED)


@click.command(cls=Command)
@click.argument("queue", type=value_types.QUEUE)
@drain_options
@click.pass_obj
def drain(invocation: Invocation, /, queue: str, **options: Any) -> None:
    """Pause or close a queue, and wait until none of its jobs runs.

    The queue stays paused or closed afterwards, also after a timeout (exit code 1) or an interrupt. For a
    tenant or a task use `fairlane tenants drain` or `fairlane tasks drain`.
    """
    drain_subject(invocation, SubjectKind.QUEUE, queue, **options)
