"""Say who is first in line, from the heads that claims use."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from fairlane.store.contract.line import FirstInLine, JobLine
from fairlane.store.sqlite.query import each_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("line")


def first_in_line(tx: Transaction, lines: Sequence[JobLine]) -> tuple[FirstInLine, ...]:
    """Return the first ready job of each line that has any."""
    rows = each_row(tx.db, _SQL.first_in_line, [(line.tenant, line.queue) for line in lines])
    return tuple(
        FirstInLine(JobLine(tenant, queue), UUID(bytes=id), ready_at) for tenant, queue, id, ready_at in rows
    )
