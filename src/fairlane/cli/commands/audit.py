"""`fairlane audit`: who did what, and whether anybody has changed that record."""

from __future__ import annotations

from typing import Any

import click

from fairlane import AuditEntry, Fairlane, Page
from fairlane.app.journals.views import audit_json, report_json
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.journal_filters import journal_filters, with_journal_filters
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.journal import audit_fields, audit_view, report_text
from fairlane.cli.shared_options import paged, refuse_cursor, write_to
from fairlane.model.instants import Instant
from fairlane.store.contract.request import MAX_PAGE_SIZE


@click.group(cls=Group, lists=True)
def audit() -> None:
    """Show and verify what operators did: list, show, verify, export. Default: list."""


@audit.command("list", cls=Command)
@with_journal_filters(of_events=False)
@paged("entries", most=MAX_PAGE_SIZE)
@click.pass_obj
def list_entries(invocation: Invocation, /, *, limit: int, cursor: str | None, **options: Any) -> None:
    """List what operators did, the newest first.

    Entries without a number are not sealed yet: a worker does that within seconds.
    """
    filters = journal_filters(options)

    async def read(app: Fairlane) -> tuple[Page[AuditEntry], Instant]:
        return await app.audit.afind(limit=limit, cursor=cursor, **filters), await now_of(app)

    with refuse_cursor():
        page, now = invocation.run(read)
    invocation.output.table(page.items, audit_view(now), empty="No entry matches.")
    if page.cursor is not None:
        invocation.output.note(f"There may be more: continue with --cursor {page.cursor}")


@audit.command(cls=Command)
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def show(invocation: Invocation, number: int) -> None:
    """Show everything about one sealed entry."""

    async def read(app: Fairlane) -> tuple[AuditEntry, Instant]:
        return await app.audit.aget(number), await now_of(app)

    entry, now = invocation.run(read)
    invocation.output.record(audit_fields(entry, now), audit_json(entry))


@audit.command(cls=Command)
@click.pass_obj
def verify(invocation: Invocation) -> None:
    """Read the whole audit, and report entries that were changed, moved or removed.

    It needs the key of the workers that seal it: `audit.key` or FAIRLANE_AUDIT_KEY. Exit code 1 if something
    is wrong.
    """
    report = invocation.run(lambda app: app.audit.averify())
    invocation.output.answer(report_text(report), report_json(report))
    if not report.is_intact:
        raise click.exceptions.Exit(Exit.REFUSED)


@audit.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@with_journal_filters(of_events=False)
@click.pass_obj
def export(invocation: Invocation, /, file: str, **options: Any) -> None:
    """Write entries as JSON lines into FILE, oldest first, or to standard output if it is `-`.

    What looks secret is redacted. An existing file is replaced.
    """
    filters = journal_filters(options)
    written = write_to(
        file, invocation, lambda to: invocation.run(lambda app: app.audit.aexport(to, **filters))
    )
    invocation.output.note(f"{written:,} entries written.")
