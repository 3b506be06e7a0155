"""`/history`: finished jobs as JSON lines, written out and taken back (S116). Not there for one tenant."""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final, cast

import msgspec
from starlette.responses import Response

from fairlane.model.access import Role
from fairlane.web.api.bodies import Cursor, PlainFilters, Why
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup
from fairlane.web.http.download import NDJSON, download

HISTORY: Final = EndpointGroup("history", "Finished jobs in files: all that is stored, nothing redacted.")

FILE: Final = "application/octet-stream"
"""What an import takes: lines, plain or gzip, or Parquet."""

NEXT: Final = "X-Cursor"
"""The header with the cursor at which an export with a limit goes on."""

Most = Annotated[int, msgspec.Meta(ge=1, description="How many to write at most; all without it.")]


class ExportJobs(PlainFilters, frozen=True, kw_only=True):
    """Which finished jobs, and why. Times are of the enqueue: [since, until)."""

    note: Why
    limit: Most | None = None
    cursor: Cursor = None


class ImportQuery(Body, frozen=True, kw_only=True):
    """Why jobs are brought back; it is audited."""

    note: Why


class ImportReply(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs are back, and how many the store knew already."""

    restored: int
    known: int


@HISTORY.post(
    "/history/export", "history.export", least=Role.MANAGER, tenants="all", produces=NDJSON, limited=False
)
async def export(call: WebCall, body: ExportJobs) -> Response:
    """Return the finished jobs and dead letters that match as JSON lines, newest enqueue first, as a file.

    Each line has all that is stored, as the archive and `history.import` have it; nothing is redacted. With
    `Accept-Encoding: gzip` it comes compressed. The header `X-Cursor` says where to go on behind a `limit`;
    without it there are no more.
    """
    write = partial(
        call.app.history.aexport, limit=body.limit, cursor=body.cursor, note=body.note, **body.filters
    )
    answer, result = await download(call.request, "history.jsonl", write)
    if result.cursor is not None:
        answer.headers[NEXT] = result.cursor
    return answer


@HISTORY.post("/history/import", "history.import", least=Role.MANAGER, tenants="all", takes=FILE)
async def bring_back(call: WebCall, query: ImportQuery) -> ImportReply:
    """Bring back the finished jobs of a file of JSON lines, as an export or the archive has written it.

    The body is the file, plain, gzip or Parquet. It is checked first: 422 names the line and the field, and
    nothing is stored. Jobs that the store knows are left as they are, so it may be sent again. Send what is
    larger than `web.max_body` in parts.
    """
    with TemporaryFile() as file:
        async for part in call.request.stream():
            file.write(part)
        file.seek(0)
        source = cast("BinaryIO", file)
        result = await call.app.history.aimport_from(source, note=query.note)
    return ImportReply(restored=result.restored, known=result.known)
