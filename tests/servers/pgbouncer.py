"""A private PgBouncer in transaction mode before a server of ours: installed here, or fetched."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers.debian import Program, find
from tests.servers.postgres import PostgresServer, free_port, other_user

_INI: Final = """
[databases]
postgres = host=127.0.0.1 port={server} dbname=postgres user=fairlane
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
"""


def program() -> Program:
    """Find PgBouncer: where FAIRLANE_TEST_PGBOUNCER says, installed, or fetched; LookupError says why not."""
    given = os.environ.get("FAIRLANE_TEST_PGBOUNCER")
    return Program(Path(given)) if given else find("pgbouncer")


@contextmanager
def bouncing(server: PostgresServer) -> Iterator[int]:
    """Run PgBouncer before a server as long as this lasts; return its port."""
    found, port = program(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(_INI.format(server=server.port, port=port))
        settings.chmod(0o644)  # whatever the umask: it is read by another user
        Path(folder).chmod(0o755)
        process = subprocess.Popen(  # noqa: S603 (our own set-up)
            [str(found.path), str(settings)],
            env=found.environment(),
            stderr=subprocess.PIPE,
            text=True,
            **other_user(),
        )
        assert process.stderr is not None
        try:
            while "process up" not in (line := process.stderr.readline()):
                assert line, "PgBouncer does not start"
            yield port
        finally:
            process.terminate()
            process.communicate()
