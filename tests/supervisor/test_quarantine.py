"""One tenant's jobs that end their process, one after the other, harm no other tenant (S39)."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from fairlane import State
from tests.campaigns.places import opened
from tests.supervisor.conftest import Shop, wait_for
from tests.supervisor.test_rolling_restart import migrated, open_folder

_LEASE = {"FAIRLANE_WORKER__LEASE": "1", "FAIRLANE_WORKER__RENEW_EVERY": "0.25"}


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_a_stream_of_jobs_that_kill_their_process_condemns_and_starves_nobody(store: str) -> None:
    """A neighbour's jobs are lost with two processes at most, fail no attempt, and run beside the stream."""
    with open_folder() as folder, opened(store, folder) as place:
        asyncio.run(migrated(place.url))
        shop = Shop(folder, place.url)
        try:
            killers: list[Any] = []
            neighbours = [shop.nap.using(tenant="umbrella").enqueue(0.2) for _ in range(3)]

            def has_ended() -> bool:
                """Keep fresh killers waiting until the neighbour's jobs have ended."""
                if len(killers) < len(set(shop.starts())) + 3:
                    killers.append(shop.kill.using(tenant="acme").enqueue(int(signal.SIGKILL)))
                return all(job.refresh().is_finished for job in neighbours)

            command = shop.start(**_LEASE)
            wait_for(has_ended, lambda: "".join(command.lines))
            ended = [job.refresh() for job in neighbours]
            assert {(job.state, job.failures) for job in ended} == {(State.SUCCEEDED, 0)}
            assert len(command.events("process_ended")) == 2
            assert command.events("all_quarantined")
            fresh = shop.nap.using(tenant="umbrella").enqueue(0.0)
            wait_for(lambda: fresh.refresh().state is State.SUCCEEDED)
            assert fresh.refresh().attempt == 1
        finally:
            shop.close()


def test_one_crash_is_no_reason_for_a_quarantine(shop: Shop) -> None:
    """It may be chance; a second one is not, and concerns the processes that work too."""
    command = shop.start("--processes", "2")
    first, second = command.serving(2)
    os.kill(first, signal.SIGKILL)
    (third,) = command.serving(3)[2:]
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    assert not command.events("all_quarantined")
    os.kill(third, signal.SIGKILL)
    command.until("all_quarantined", 2)
    assert second in command.pids()
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    assert dict(shop.notes())[str(job.id)] not in command.pids()
