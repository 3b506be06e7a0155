"""The table of peers matches the files in its folder, and drivers speak the protocol."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers import drive, environments
from benchmarks.peers.compare import Comparison, Sizes
from benchmarks.peers.environments import OWN, REQUIREMENTS, ROOT
from benchmarks.peers.protocol import Job, PeerDriver
from benchmarks.peers.roster import LEAST, ROSTER, STORES, choose, rotated

DRIVERS = REQUIREMENTS.parent / "drivers"


def test_every_peer_has_a_driver_and_requirements_and_no_file_is_left_over() -> None:
    """Adding a peer is these two files and a line."""
    drivers = {path.stem for path in DRIVERS.glob("*.py")} - {"__init__"}
    assert {peer.driver for peer in ROSTER} == drivers
    wanted = {path.stem for path in REQUIREMENTS.glob("*.txt")}
    assert {peer.environment for peer in ROSTER} - {OWN} | {"servers"} == wanted
    assert len({peer.name for peer in ROSTER}) == len(ROSTER)


@pytest.mark.parametrize("file", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda file: file.stem)
def test_what_goes_into_an_environment_is_pinned_and_names_no_index(file: Path) -> None:
    """Each line is a name, a version and perhaps a marker."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*( ; .+)?", line)] == []


def test_on_every_store_one_peer_is_flooded_beside_fairlane() -> None:
    """And Fairlane, as it comes, has a row for one tenant, and for very many."""
    for store in STORES:
        here = [peer for peer in ROSTER if peer.store == store]
        assert [peer.is_ours for peer in here if peer.flooded] == [True, False]
        assert [peer.tenants for peer in here if peer.is_compared] == [1, 100, 1_000, 100_000]


def test_fairlane_is_measured_beside_whoever_is_chosen() -> None:
    """Without it there is no ratio; on other stores nothing is started."""
    chosen = choose(["saq-postgres", "saq-redis"], ["redis"])
    assert [peer.name for peer in chosen if not peer.is_ours] == ["saq-redis"]
    ours = [peer for peer in ROSTER if peer.is_ours and peer.store == "redis"]
    assert [peer for peer in chosen if peer.is_ours] == ours
    assert choose([], STORES) == list(ROSTER)


def test_every_round_begins_with_another_peer_and_has_all() -> None:
    """What is first finds another machine than what is last."""
    played = [rotated(ROSTER, number) for number in range(len(ROSTER))]
    assert len({peers[0].name for peers in played}) == len(ROSTER)
    assert all(
        sorted(peer.name for peer in peers) == sorted(peer.name for peer in ROSTER) for peers in played
    )


def test_slow_peers_get_fewer_jobs_but_never_so_few_that_they_say_nothing() -> None:
    """Unless fewer are asked for."""
    (rq,) = (peer for peer in ROSTER if peer.name == "rq")
    assert [rq.jobs(most) for most in (100_000, 1_000, 50)] == [3_000, LEAST, 50]


def test_there_is_a_job_for_each_of_very_many_tenants() -> None:
    """In a run of the usual length; otherwise there would be fewer tenants than the row says."""
    (most,) = (peer for peer in ROSTER if peer.name == "fairlane-redis-100000")
    assert most.jobs(20_000) == most.tenants


class Recording(PeerDriver):
    """Notes what it is asked to enqueue."""

    packages = ()

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def settings(self) -> str:
        """Say nothing."""
        return ""

    def worker(self) -> Sequence[str]:
        """Start nothing."""
        return []

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Note all."""
        self.jobs += jobs

    async def one(self, job: Job) -> None:
        """Note one."""
        self.jobs.append(job)


async def test_a_driver_is_asked_for_many_for_one_and_for_its_books() -> None:
    """The harness numbers jobs and spreads them over tenants; moments come back in their order."""
    driver = Recording()
    many = await drive.answer(driver, {"do": "many", "first": 4, "jobs": 3, "tenants": 2, "millis": 10})
    one = await drive.answer(driver, {"do": "one", "number": 9, "tenant": "quiet", "millis": 0})
    assert driver.jobs == [Job(4, "t0", 10), Job(5, "t1", 10), Job(6, "t0", 10), Job(9, "quiet", 0)]
    assert many["before"] <= many["after"] <= one["before"] <= one["after"]
    assert await drive.answer(driver, {"do": "finished"}) == {"finished": None}


def test_what_a_driver_loads_first_needs_no_package() -> None:
    """It must run in every peer's environment, where neither Fairlane nor msgspec is."""
    code = "import sys, benchmarks.peers.drive; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert {"fairlane", "msgspec"} & set(ran.stdout.split()) == set()


def test_an_environment_that_cannot_be_made_leaves_its_peers_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others would be measured all the same."""
    (tmp_path / "rq.txt").write_text(f"{tmp_path}/nowhere.whl\n", encoding="utf-8")
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(environments.make_ready, "__defaults__", (tmp_path / "cache",))
    monkeypatch.setattr(environments.is_ready, "__defaults__", (tmp_path / "cache",))
    printed: list[str] = []
    peers = [peer for peer in ROSTER if peer.name == "rq"]
    report = Comparison(peers, Sizes(rounds=1), tmp_path, printed.append).run({})
    assert [one.name for one in report.left_out] == ["rq"]
    assert "nowhere.whl" in report.left_out[0].why
    assert printed[0] == f"making the environment {tmp_path / 'cache' / 'rq'}"
    assert not environments.is_ready("rq", tmp_path / "cache")


@pytest.mark.parametrize("words", [["nobody"], ["--rounds", "0"], ["--jobs", "x"], ["--store", "mysql"]])
def test_words_that_mean_nothing_are_refused(words: list[str]) -> None:
    """Before anything is made or started."""
    command = [sys.executable, "-m", "benchmarks.peers", *words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words[-1] in ran.stderr
