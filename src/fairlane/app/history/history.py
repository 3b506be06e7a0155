"""`app.history`: write finished jobs into a file, and take them back from one (S116)."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TextIO, Unpack

from fairlane.app.admin.bulk_entries import BulkAction, audited
from fairlane.app.admin.validation import FindFilters, text_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.app.history.exporting import ExportResult, export_request, write_jobs
from fairlane.app.history.importing import ImportResult, take_jobs

_WHY = "files of history hold jobs of all tenants"


class History:
    """The finished jobs of a store. Each method has an async twin whose name starts with `a`.

    For operators: inside a tenant its methods raise `TenantMismatch`. Both are audited.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def export(
        self,
        to: Path | str | TextIO,
        /,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        note: str = "",
        **filters: Unpack[FindFilters],
    ) -> ExportResult:
        """Write the finished jobs and dead letters that match as JSON lines, newest enqueue first.

        `to` is the path of a file, which is replaced, or a text file that is open. Each line has all that is
        stored, nothing is redacted. The filters are those of `app.jobs.find`; `state` may only name states in
        which jobs have ended. With `limit`, the cursor of the result continues where it stopped.
        """
        return self._client.portal.run(self.aexport(to, limit=limit, cursor=cursor, note=note, **filters))

    async def aexport(
        self,
        to: Path | str | TextIO,
        /,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        note: str = "",
        **filters: Unpack[FindFilters],
    ) -> ExportResult:
        """Write the finished jobs that match as JSON lines; see `export`."""
        scope = scope_of_all(_WHY)
        request = export_request(limit, cursor, filters)
        bulk = BulkAction(action="history.export", subject="history", scope=scope, note=text_of("note", note))
        async with audited(self._client.store, bulk) as end:
            result = await write_jobs(self._client.store, to, request, limit)
            end.result = {"written": result.written}
        return result

    def import_from(self, source: Path | str | BinaryIO, /, *, note: str = "") -> ImportResult:
        """Bring back the finished jobs of a file of JSON lines, as an export or the archive has written it.

        `source` is a path, or a file that is open for bytes and can be read twice; gzip is recognised, and so
        is Parquet. Jobs come back as they were, into the history or among the dead letters, and never run.
        Those that the store knows are left as they are, so that an import may be repeated. First the whole
        file is checked: ValueError names the line and the field, and nothing is stored.
        """
        return self._client.portal.run(self.aimport_from(source, note=note))

    async def aimport_from(self, source: Path | str | BinaryIO, /, *, note: str = "") -> ImportResult:
        """Bring back the finished jobs of a file; see `import_from`."""
        scope = scope_of_all(_WHY)
        bulk = BulkAction(action="history.import", subject="history", scope=scope, note=text_of("note", note))
        async with audited(self._client.store, bulk) as end:
            result = await take_jobs(self._client.store, source, scope)
            end.result = {"restored": result.restored, "known": result.known}
        return result
