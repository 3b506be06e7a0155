"""What a waiting job takes of a server's memory; `python -m tests.servers.redis_memory` tells it in full."""

from __future__ import annotations

import pytest

from tests.servers.redis_memory import MOST, bytes_of_a_job
from tests.servers.valkey import ValkeyServer


@pytest.mark.parametrize("tenants", [1, 1_000])
async def test_a_waiting_job_takes_little_beside_its_payload(server: ValkeyServer, tenants: int) -> None:
    """200 bytes of payload; its place in every index is counted, and its share of its tenant's record."""
    assert await bytes_of_a_job(server, 3_000, tenants) < MOST
