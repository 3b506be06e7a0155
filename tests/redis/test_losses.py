"""What a server may lose, in small; the page of docs/proofs is the same with more load (S63, S36)."""

from __future__ import annotations

import pytest

from tests.servers.redis_losses import failed_over, without_power


@pytest.mark.parametrize(("setting", "keeps"), [("always", True), ("no", False)])
async def test_a_power_cut_takes_what_was_not_synced(setting: str, keeps: bool) -> None:
    """Of acknowledged jobs none with `always`; and it would be seen: with `no` all of them are gone."""
    try:
        loss = await without_power(setting, 0.3)
    except LookupError as error:
        pytest.skip(str(error))
    assert loss.enqueued > 0
    assert (loss.lost == 0) is keeps
    assert (loss.forgotten, loss.fences_broken) == (0, 0)


async def test_an_enqueue_that_waited_for_a_replica_survives_a_failover() -> None:
    """`?replicas=1`, with a replica that is behind; no old fence opens anything on it."""
    loss = await failed_over(1, 0.3)
    assert loss.enqueued > 0
    assert (loss.lost, loss.fences_broken) == (0, 0)
