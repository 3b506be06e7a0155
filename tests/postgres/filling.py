"""Fill a schema with jobs in every state, and dump it: `python -m tests.postgres.filling`.

Run once for each version of the schema, with the code of that version, before the next one is written. It
makes `version_N.sql.gz`, tables and functions, as PostgreSQL 15 dumps them.
"""

from __future__ import annotations

import asyncio
import gzip
import subprocess
from pathlib import Path
from typing import Final

from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, Subject, SubjectKind, TaskRules, TenantRules
from fairlane.store.postgres.migrating import NEWEST
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import SUCCEEDED, World, failed, ruined
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import HASTY, PostgresServer, other_user

_SCHEMA: Final = "first"
_VERSION: Final = "15"
_OPTIONS: Final = ("--inserts", "--no-owner", "--no-privileges", f"--schema={_SCHEMA}")


async def fill(world: World) -> None:
    """Leave jobs that have ended, run, wait for a time, are parked, or came in since the last claim."""
    await world.put(
        {
            Subject(SubjectKind.TENANT, "globex"): TenantRules(limits={"*": Limits(running=1)}),
            Subject(SubjectKind.TASK, "gated"): TaskRules(gate="door"),
            Subject(SubjectKind.TASK, "rated"): TaskRules(rate=Rate(1, "second")),
            Subject(SubjectKind.GATE, "door"): GateRules(limit=1),
        }
    )
    for ending in (SUCCEEDED, ruined(), failed(after=600 * SECOND)):
        await world.enqueue()
        await world.settle(await world.claim_one(), ending)
    await world.enqueue_many(2)
    await world.enqueue_many(2, task="gated")
    await world.enqueue_many(2, "globex")
    await world.enqueue_many(2, "hooli", task="rated")
    await world.enqueue(delay=3_600 * SECOND)
    assert len(await world.claim(20)) == 5  # the others are parked, each for its reason
    await world.enqueue("umbrella")


async def _run(url: str) -> None:
    clock = DrivenClock()
    store = PostgresStore(f"{url}&schema={_SCHEMA}", clock.now)
    await store.upkeep.migrate()
    await fill(World(store, clock))
    await store.upkeep.aclose()


def main() -> None:
    """Write the file of this version."""
    server = PostgresServer(*HASTY, version=_VERSION)
    server.start()
    try:
        asyncio.run(_run(server.url))
        text = subprocess.run(  # noqa: S603 (ours)
            [str(server.bin / "pg_dump"), *_OPTIONS, f"--dbname={server.url}"],
            check=True,
            capture_output=True,
            **other_user(),
        ).stdout
    finally:
        server.close()
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    lines = [line for line in lines if not line.startswith((b"--", b"\\"))]  # comments, commands of psql
    file = Path(__file__).with_name(f"version_{NEWEST}.sql.gz")
    file.write_bytes(gzip.compress(b"".join(lines), mtime=0))


if __name__ == "__main__":
    main()
