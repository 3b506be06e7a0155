"""Measure peers beside Fairlane, in turn: environments, servers, rounds, floods, one report."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from benchmarks.peers import environments, flood, peer_stores, report, servers, speed
from benchmarks.peers.processes import PeerError, PeerRun, prepare
from benchmarks.peers.protocol import DriverInfo
from benchmarks.peers.report import PeerRow, PeersReport, SkippedPeer
from benchmarks.peers.roster import Peer, Store, rotated
from fairlane.lab.bench.environment import host
from fairlane.lab.bench.report import Amount, Check, RoundResult

SERVERS = "servers"
FILES: Store = "sqlite"


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much to measure."""

    jobs: int = 20_000
    singles: int = 100
    rounds: int = 3
    floods: int = 1
    flood_jobs: int = 8_000
    quiet_seconds: float = 3.0
    seed: int = 1


class Comparison:
    """All rounds of some peers in one folder. A peer that fails is left out from then on, with the reason."""

    def __init__(self, peers: Sequence[Peer], sizes: Sizes, folder: Path, say: Callable[[str], None]) -> None:
        self._peers = list(peers)
        self._sizes = sizes
        self._folder = folder
        self._say = say
        self._grounds: dict[Store, peer_stores.PeerStore] = {}
        self._pythons: dict[str, Path] = {}
        self._hellos: dict[str, DriverInfo] = {}
        self._rounds: dict[str, list[RoundResult]] = {}
        self._floods: dict[str, list[RoundResult]] = {}
        self._checks: list[Check] = []
        self._left_out: list[SkippedPeer] = []
        self._runs = 0

    def run(self, urls: dict[Store, str]) -> PeersReport:
        """Measure everything. A store named in `urls` is used instead of a private server."""
        machine, began_at = host(), time.monotonic()
        self._make_environments()
        with ExitStack() as stack:
            for store in dict.fromkeys(peer.store for peer in self._peers):
                self._start(store, urls.get(store), stack)
            for number in range(self._sizes.rounds):
                for peer in rotated(self._peers, number):
                    self._say(f"round {number + 1} of {self._sizes.rounds}: {peer.name}")
                    self._measure(peer, number)
            self._play_floods()
        return self._report(machine, time.monotonic() - began_at)

    # ── what must be there ───────────────────────────────────────────────────

    def _make_environments(self) -> None:
        for name in dict.fromkeys(peer.environment for peer in self._peers):
            try:
                self._pythons[name] = environments.make_ready(name, self._say)
            except environments.NoEnvironmentError as error:
                self._leave_out([p for p in self._peers if p.environment == name], f"not installed: {error}")

    def _start(self, store: Store, url: str | None, stack: ExitStack) -> None:
        try:
            self._grounds[store] = self._ground(store, url, stack)
        except (peer_stores.ServerError, environments.NoEnvironmentError, OSError) as error:
            self._leave_out([peer for peer in self._peers if peer.store == store], f"no server: {error}")

    def _ground(self, store: Store, url: str | None, stack: ExitStack) -> peer_stores.PeerStore:
        if store == FILES:
            return peer_stores.Files()
        if store == "redis" and url:
            return stack.enter_context(servers.lent_valkey(url))
        environment = environments.make_ready(SERVERS, self._say).parent.parent
        if store == "postgres" and url:
            return stack.enter_context(servers.lent_postgres(environment, url))
        if store == "postgres":
            return stack.enter_context(servers.private_postgres(environment, self._folder))
        return stack.enter_context(servers.private_valkey(environment, self._folder))

    # ── runs ─────────────────────────────────────────────────────────────────

    def _play_floods(self) -> None:
        """Run the fairness rounds; a peer that fails here keeps its other figures."""
        flooded = [peer for peer in self._peers if peer.flooded]
        for number in range(self._sizes.floods):
            for peer in rotated(flooded, number):
                self._say(f"flood {number + 1} of {self._sizes.floods}: {peer.name}")
                try:
                    self._flood(peer, number)
                except (PeerError, peer_stores.ServerError) as error:
                    self._note(f"{peer.name}, flood", str(error))
                    self._floods.pop(peer.name, None)
                    flooded.remove(peer)

    def _measure(self, peer: Peer, number: int) -> None:
        try:
            with self._cast(peer) as run:
                found = speed.play(run, number, peer.jobs(self._sizes.jobs), self._sizes.singles)
        except (PeerError, peer_stores.ServerError) as error:
            self._leave_out([peer], str(error))
        else:
            self._rounds.setdefault(peer.name, []).append(found)
            self._checks += found.checks

    def _flood(self, peer: Peer, number: int) -> None:
        due = flood.arrivals(self._sizes.seed + number, self._sizes.quiet_seconds)
        amounts: dict[str, Amount] = {}
        for jobs in (0, self._sizes.flood_jobs):
            with self._cast(peer, slots=flood.SLOTS) as run:
                found, check = flood.play(run, number, jobs, due)
            amounts |= found
            self._checks.append(check)
        self._floods.setdefault(peer.name, []).append(RoundResult(amounts))

    @contextmanager
    def _cast(self, peer: Peer, slots: int | None = None) -> Generator[PeerRun]:
        """Give a peer a folder and an empty store for a block, and let it create its tables."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        url = self._grounds[peer.store].fresh(folder)
        run = PeerRun(peer=peer, python=self._pythons[peer.environment], url=url, folder=folder, slots=slots)
        hello = prepare(run)
        if hello.unsupported:
            raise PeerError(hello.unsupported)
        # The first is of a round: how it is set up to be fast. Floods have their own number of slots.
        self._hellos.setdefault(peer.name, hello)
        try:
            yield run
        finally:
            shutil.rmtree(folder)

    def _leave_out(self, peers: Sequence[Peer], why: str) -> None:
        for peer in peers:
            self._note(peer.name, why)
            self._peers.remove(peer)
            self._rounds.pop(peer.name, None)

    def _note(self, name: str, why: str) -> None:
        self._say(f"left out: {name}: {why}")
        self._left_out.append(SkippedPeer(name, why))

    # ── the answer ───────────────────────────────────────────────────────────

    def _report(self, machine: Mapping[str, str | int | float], seconds: float) -> PeersReport:
        rows = tuple(
            PeerRow(
                name=peer.name,
                store=peer.store,
                tenants=peer.tenants,
                jobs=peer.jobs(self._sizes.jobs),
                versions=self._hellos[peer.name].versions,
                settings=self._hellos[peer.name].settings,
            )
            for peer in self._peers
        )
        return PeersReport(
            host={**machine, "python": sys.version.split()[0], "load_after": round(os.getloadavg()[0], 2)},
            stores={store: dict(ground.about) for store, ground in self._grounds.items()},
            settings=msgspec.structs.asdict(self._sizes),
            peers=rows,
            left_out=tuple(self._left_out),
            measures=tuple(report.own_measures(self._peers, self._rounds)),
            ratios=tuple(report.ratios(self._peers, self._rounds)),
            fairness=tuple(report.fairness(self._peers, self._floods)),
            checks=tuple(self._checks),
            seconds=seconds,
            ok=all(check.ok for check in self._checks),
        )
