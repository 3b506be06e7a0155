"""The job that goes first of a tenant in a queue, whatever holds it: since when its tenant waits there."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

MAX_LINES: Final = MAX_PAGE_SIZE


class JobLine(msgspec.Struct, frozen=True, order=True):
    """The ready jobs of one tenant in one queue, in the order in which they start."""

    tenant: str
    queue: str


class FirstRequest(Request, frozen=True, kw_only=True):
    """Ask who is first in these lines, at most `MAX_LINES` of them."""

    lines: tuple[JobLine, ...]


class FirstInLine(msgspec.Struct, frozen=True, order=True):
    """The first ready job of a line, and since when it could run: its `run_at`."""

    line: JobLine
    id: UUID
    ready_at: Instant


def lines_in(request: FirstRequest) -> list[JobLine]:
    """Return the lines that exist for the scope, each once, sorted; ValueError if there are too many.

    >>> from fairlane.model.scope import Scope
    >>> lines = (JobLine("b", "q"), JobLine("a", "q"), JobLine("b", "q"))
    >>> lines_in(FirstRequest(scope=Scope("b"), lines=lines))
    [JobLine(tenant='b', queue='q')]
    """
    if len(request.lines) > MAX_LINES:
        message = f"{len(request.lines)} lines were asked for, and at most {MAX_LINES} are answered"
        raise ValueError(message)
    return sorted({line for line in request.lines if request.scope.covers(line.tenant)})
