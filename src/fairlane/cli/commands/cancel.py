"""`fairlane cancel` and `fairlane run-now`: change single jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

import click

from fairlane import CancelReply, Fairlane
from fairlane.app.admin.operations import operation
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import GetRequest, RunNowRequest

_ALL: Final = Scope.all()
NOT_FOUND: Final = "not found"
_NOT_DELAYED: Final = "not delayed"

_VIEW: Final[TableView[tuple[UUID, str]]] = TableView(
    {"ID": lambda row: str(row[0]), "ANSWER": lambda row: row[1]},
    lambda row: {"id": str(row[0]), "answer": row[1]},
)


@click.command(cls=Command)
@click.argument("ids", type=value_types.JOB, nargs=-1, required=True, metavar="ID...")
@click.option("--descendants", is_flag=True, help="Also cancel the jobs that these enqueued, and theirs.")
@click.option("--note", type=value_types.TEXT, default="", help="The reason, stored with the jobs.")
@click.option("--yes", is_flag=True, help="Do not ask before cancelling descendants.")
@click.pass_obj
def cancel(invocation: Invocation, ids: tuple[UUID, ...], *, descendants: bool, note: str, yes: bool) -> None:
    """Cancel waiting jobs, and ask running ones to stop.

    Answers: `cancelled`: it will not run; `requested`: it is running, and its handler is asked to stop;
    `finished`: too late; `not found`.
    """
    if descendants:
        invocation.confirm(f"Cancel {len(ids)} job(s) and all their descendants?", yes=yes)
    replies = invocation.run(lambda app: app.jobs.acancel(*ids, reason=note, descendants=descendants))
    answers = dict.fromkeys(ids, NOT_FOUND) | {id: reply.value for id, reply in replies.items()}
    print_answers(invocation, answers, late=[CancelReply.FINISHED.value])


@click.command("run-now", cls=Command)
@click.argument("ids", type=value_types.JOB, nargs=-1, required=True, metavar="ID...")
@note
@click.pass_obj
def run_now(invocation: Invocation, ids: tuple[UUID, ...], *, note: str) -> None:
    """Make delayed jobs ready now.

    Answers: `ready`; `not delayed`: the job was not waiting for a time; `not found`.
    """

    async def work(app: Fairlane) -> dict[UUID, str]:
        store = app.client.store.jobs
        done = operation("jobs.run_now", note=note)
        moved = await store.run_now(RunNowRequest(scope=_ALL, ids=ids, operation=done))
        there = await store.get(GetRequest(scope=_ALL, ids=ids))
        return {
            id: "ready" if id in moved else _NOT_DELAYED if id in there else NOT_FOUND
            for id in dict.fromkeys(ids)
        }

    print_answers(invocation, invocation.run(work), late=[_NOT_DELAYED])


def print_answers(invocation: Invocation, answers: Mapping[UUID, str], *, late: Iterable[str]) -> None:
    """Print the answer for each job; exit with the worst code."""
    invocation.output.table(answers.items(), _VIEW)
    if NOT_FOUND in answers.values():
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    if set(late) & set(answers.values()):
        raise click.exceptions.Exit(Exit.REFUSED)
