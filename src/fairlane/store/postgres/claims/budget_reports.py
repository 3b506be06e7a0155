"""Count what workers have reported of budgets (S113). Claims do so, too."""

from __future__ import annotations

from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.statements import load


async def count_reports(server: Server) -> None:
    """Count what workers have reported since the last claim."""
    await server.fetch(load("budgets", server.schema).count_reports)
