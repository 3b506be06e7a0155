"""`fairlane cancel` and `fairlane run-now`: change what becomes of single jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

import click

from fairlane import CancelReply, Fairlane
from fairlane.cli import kinds
from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.output import View
from fairlane.cli.session import Session
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import GetRequest, RunNowRequest

_ALL: Final = Scope.all()
_NOT_FOUND: Final = "not found"
_NOT_DELAYED: Final = "not delayed"

_VIEW: Final[View[tuple[UUID, str]]] = View(
    {"ID": lambda row: str(row[0]), "ANSWER": lambda row: row[1]},
    lambda row: {"id": str(row[0]), "answer": row[1]},
)


@click.command(cls=Command)
@click.argument("ids", type=kinds.JOB, nargs=-1, required=True, metavar="ID...")
@click.option("--descendants", is_flag=True, help="Also the jobs that these have enqueued, and theirs.")
@click.option("--note", type=kinds.TEXT, default="", help="Why; it is kept with the jobs.")
@click.option("--yes", is_flag=True, help="Do not ask before cancelling descendants.")
@click.pass_obj
def cancel(session: Session, ids: tuple[UUID, ...], *, descendants: bool, note: str, yes: bool) -> None:
    """Cancel jobs that wait, and ask those that run to stop.

    Answers: `cancelled`, it will not run; `requested`, it runs and its handler has been told; `finished`, it
    came too late; `not found`.
    """
    if descendants:
        session.confirm(f"Cancel {len(ids)} job(s) and all that they have enqueued?", yes=yes)
    replies = session.run(lambda app: app.jobs.acancel(*ids, reason=note, descendants=descendants))
    answers = dict.fromkeys(ids, _NOT_FOUND) | {id: reply.value for id, reply in replies.items()}
    _answer(session, answers, late=[CancelReply.FINISHED.value])


@click.command("run-now", cls=Command)
@click.argument("ids", type=kinds.JOB, nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def run_now(session: Session, ids: tuple[UUID, ...]) -> None:
    """Make delayed jobs ready at once.

    Answers: `ready`; `not delayed`, there was nothing to wait for; `not found`.
    """

    async def work(app: Fairlane) -> dict[UUID, str]:
        store = app.client.store.jobs
        moved = await store.run_now(RunNowRequest(scope=_ALL, ids=ids))
        there = await store.get(GetRequest(scope=_ALL, ids=ids))
        return {
            id: "ready" if id in moved else _NOT_DELAYED if id in there else _NOT_FOUND
            for id in dict.fromkeys(ids)
        }

    _answer(session, session.run(work), late=[_NOT_DELAYED])


def _answer(session: Session, answers: Mapping[UUID, str], *, late: Iterable[str]) -> None:
    """Show what became of each, and exit with the worst of it."""
    session.output.table(answers.items(), _VIEW)
    if _NOT_FOUND in answers.values():
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    if set(late) & set(answers.values()):
        raise click.exceptions.Exit(Exit.REFUSED)
