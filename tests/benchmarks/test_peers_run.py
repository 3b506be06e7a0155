"""Small real comparisons: Fairlane itself, and peers that are already installed. Nothing is fetched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from benchmarks.peers import flood, peer_stores, processes, servers, speed
from benchmarks.peers.compare import Comparison, Sizes
from benchmarks.peers.environments import CACHE, ROOT, is_ready, python_of
from benchmarks.peers.processes import PeerError, PeerRun
from benchmarks.peers.report import PeersReport
from benchmarks.peers.roster import ROSTER, Peer
from tests.processes.conftest import wait_for

SMALL = Sizes(jobs=300, singles=10, rounds=1, floods=1, flood_jobs=160, quiet_seconds=0.2)


def peers(*names: str) -> list[Peer]:
    """Return these, in the order of the table."""
    return [peer for peer in ROSTER if peer.name in names]


def compare(tmp_path: Path, *names: str, sizes: Sizes = SMALL) -> PeersReport:
    """Compare these peers, and see that nothing is left of it."""
    report = Comparison(peers(*names), sizes, tmp_path, print).run({})
    assert list(tmp_path.iterdir()) == []
    assert msgspec.json.decode(msgspec.json.encode(report), type=PeersReport).stores == report.stores
    return report


def needed(name: str) -> None:
    """Skip unless the environment is there: tests install nothing."""
    if not is_ready(name):
        pytest.skip(f"no environment .peers/{name}: `make peers` makes it")


def test_fairlane_is_driven_like_any_peer_and_its_books_agree_with_the_marks(tmp_path: Path) -> None:
    """One tenant and many, rounds and a flood, through its own command line."""
    report = compare(tmp_path, "fairlane-sqlite", "fairlane-sqlite-1000")
    assert report.ok, report.checks
    assert [row.name for row in report.peers] == ["fairlane-sqlite", "fairlane-sqlite-1000"]
    assert "default settings" in report.peers[0].settings
    assert "synchronous=full" in report.peers[0].settings
    played = [one for one in report.checks if one.scenario == "speed"]
    assert [(one.jobs, one.history, one.verdict) for one in played] == [(915, 915, "all once")] * 2
    assert [one.scenario for one in report.checks[2:]] == ["alone", "flood"]
    assert all(len(one.values) == 1 and (one.low or 0) > 0 for one in report.measures)
    assert {one.name for one in report.fairness} == {flood.ALONE, flood.FLOODED, flood.BACKLOGGED}


def test_huey_is_compared_round_by_round(tmp_path: Path) -> None:
    """The ratio is there, with its goal."""
    needed("huey")
    sizes = msgspec.structs.replace(SMALL, rounds=2, floods=0)
    report = compare(tmp_path, "fairlane-sqlite", "huey-sqlite", sizes=sizes)
    assert report.ok, (report.checks, report.left_out)
    (ratio,) = [one for one in report.ratios if one.name == speed.DRAINED]
    assert (ratio.scenario, len(ratio.values), ratio.goal is not None) == ("huey-sqlite", 2, True)


def a_cast(tmp_path: Path, url: str, driver: str = "fairlane") -> PeerRun:
    """Cast Fairlane, or another driver, in a folder of its own."""
    (peer,) = peers("fairlane-sqlite")
    peer = msgspec.structs.replace(peer, driver=driver)
    return PeerRun(peer=peer, python=python_of(peer.environment), url=url, folder=tmp_path)


def test_a_store_that_fairlane_cannot_open_is_said_to_be_unsupported_in_its_own_words(tmp_path: Path) -> None:
    """No figure is made up for it, and nothing fails."""
    hello = processes.prepare(a_cast(tmp_path, "carrier-pigeon://loft"))
    assert hello.unsupported is not None
    assert "no store is known for scheme 'carrier-pigeon'" in hello.unsupported


def test_a_driver_that_fails_is_quoted(tmp_path: Path) -> None:
    """Its last words say more than that it failed."""
    cast = a_cast(tmp_path, f"sqlite:///{tmp_path / 'store.db'}", driver="nobody")
    with pytest.raises(PeerError, match=r"No module named 'benchmarks\.peers\.drivers\.nobody'"):
        processes.prepare(cast)
    with pytest.raises(PeerError, match="nobody"), processes.producer(cast):
        pass
    with processes.worker(cast) as worker, pytest.raises(PeerError, match=r"the worker ended: .*nobody"):
        worker.until(1)


def test_a_worker_is_ended_with_its_children_and_its_memory_is_that_of_all(tmp_path: Path) -> None:
    """No process is left when a run is over."""
    cast = a_cast(tmp_path, f"sqlite:///{tmp_path / 'store.db'}")
    processes.prepare(cast)
    with processes.producer(cast) as ask, processes.worker(cast) as worker:
        ask(do="one", number=0, tenant="acme", millis=0)
        worker.until(1)
        assert worker.memory() > 5
        session = worker._process.pid
    with pytest.raises(ProcessLookupError):
        os.killpg(session, 0)
    assert worker.memory() == 0


def test_a_comparison_that_is_told_to_stop_takes_its_processes_along(tmp_path: Path) -> None:
    """SIGTERM leaves neither a worker nor a file."""
    words = ["fairlane-sqlite", "--rounds", "100", "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.peers", *words]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as harness:  # noqa: S603 (ours)
        children = Path(f"/proc/{harness.pid}/task/{harness.pid}/children")
        try:
            wait_for(lambda: any(tmp_path.glob("*/run-*/marks")))
            started = [int(pid) for pid in children.read_text().split()]
        finally:
            harness.terminate()
        assert harness.wait(60) == 128 + signal.SIGTERM
    assert len(started) == 2  # a producer and a worker
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def passable() -> Iterator[Path]:
    """Return a folder that the server's user can reach; pytest's own are closed to all but ours."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_private_postgres_gives_every_run_an_empty_durable_database(passable: Path) -> None:
    """It needs a password, and is gone afterwards."""
    needed("servers")
    with servers.private_postgres(CACHE / "servers", passable) as server:
        assert "fsync on, synchronous_commit on" in server.about["durability"]
        url = server.fresh(passable)
        inside = peer_stores.Postgres(server._psql, url)
        inside.ask("create table of_one_run ()")
        assert server.fresh(passable) == url
        assert inside.ask("select count(*) from pg_tables where tablename = 'of_one_run'") == ["0"]
        with pytest.raises(peer_stores.ServerError, match="password"):
            peer_stores.Postgres(server._psql, url.replace("postgres:", "postgres:not-", 1))
    assert list(passable.iterdir()) == []
    with pytest.raises(peer_stores.ServerError, match="refused"):
        server.ask("select 1")


def test_a_lent_database_with_keys_in_it_is_refused_and_one_without_is_left_empty(tmp_path: Path) -> None:
    """A database that is not empty is not touched."""
    needed("servers")
    with servers.private_valkey(CACHE / "servers", tmp_path) as server:
        assert server.about["durability"] == "appendonly yes, appendfsync everysec, no rewrites of the file"
        with servers.lent_valkey(server.fresh(tmp_path)) as lent:
            lent.ask("SET run 1")
        assert server.ask("DBSIZE") == ":0"
        server.ask("SET precious 1")
        with pytest.raises(peer_stores.ServerError, match="not empty"), servers.lent_valkey(server._url):
            pass
        assert server.ask("DBSIZE") == ":1"
    assert list(tmp_path.iterdir()) == []
