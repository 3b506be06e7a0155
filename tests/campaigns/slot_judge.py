"""Judge what schedulers have made of slots: none twice, none early, none missed that was to be taken.

It knows when each schedule began, was paused and resumed, and when a scheduler had looked at everything
without being killed. What it asks for follows from that and from the slots of each timing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from fairlane.model.instants import MINUTE, Instant
from fairlane.model.schedule.origin import scheduled_slot
from fairlane.model.schedule.records import SlotRow
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.schedules import SlotsRequest
from tests.contract.world import ALL, World

MOST: Final = 100_000
_ENDED: Final = ("enqueued", "missed")
_STOPPED: Final = "the schedule was paused"


class Blank(NamedTuple):
    """A time, its start excluded, of which nothing is made up for."""

    after: Instant
    until: Instant


class Judge:
    """Writes down what happened, and compares."""

    def __init__(self, world: World, tenants: Sequence[str]) -> None:
        """Judge one store."""
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._world = world
        self._tenants = tenants
        self._specs: dict[str, ScheduleSpec] = {}
        self._rests: list[Instant] = []
        self._blanks: dict[str, list[Blank]] = {}
        self._open: dict[str, tuple[Instant, Instant]] = {}

    def begins(self, specs: Sequence[ScheduleSpec]) -> None:
        """Write down that schedules go on from now."""
        self._specs = {spec.name: spec for spec in specs}
        self._blanks = {spec.name: [] for spec in specs}
        self._rests = [self._world.now]

    def rested(self) -> None:
        """Write down that all was looked at."""
        self._rests.append(self._world.now)

    def paused(self, name: str, settled_to: Instant) -> None:
        """Write down a pause of a schedule that was settled up to an instant."""
        self.figures["pauses"] += 1
        self._open[name] = (settled_to, self._world.now)

    def resumed(self, name: str) -> None:
        """Write down its end: what was not settled before, and what came in it, is not made up for."""
        settled_to, _ = self._open.pop(name)
        self._blanks[name].append(Blank(settled_to, self._world.now))

    async def count(self) -> int:
        """Return how many jobs there are, about: one for each slot and tenant."""
        return sum((await self._world.counts()).values())

    # ── the verdict ───────────────────────────────────────────────────────────

    async def judge(self) -> None:
        """Compare jobs and slots with what they must be."""
        for name, (settled_to, _) in self._open.items():
            self._blanks[name].append(Blank(settled_to, self._world.now))
        jobs = await self._jobs()
        self.figures["slots"] = self.figures["missed"] = 0
        for spec in self._specs.values():
            await self._judge_one(spec, jobs)
        for (name, _, at), count in jobs.items():
            if count > 1:
                self.wrong.append(f"{name}: slot {at} has {count} jobs")

    async def _jobs(self) -> Counter[tuple[str, str, Instant]]:
        """Count the jobs of each schedule, tenant and slot."""
        found: Counter[tuple[str, str, Instant]] = Counter()
        for job in await self._world.find_all():
            origin = scheduled_slot(job.tenant, job.created_by, job.correlation_id)
            if origin is None:
                self.wrong.append(f"job {job.id} comes from no slot")
                continue
            if min(job.enqueued_at, job.run_at) < origin.slot:
                self.wrong.append(f"{origin.schedule}: slot {origin.slot} was enqueued at {job.enqueued_at}")
            found[origin.schedule, job.tenant, origin.slot] += 1
        return found

    async def _judge_one(self, spec: ScheduleSpec, jobs: Counter[tuple[str, str, Instant]]) -> None:
        name, blanks = spec.name, self._blanks[spec.name]
        tenants = [spec.job.tenant] if spec.for_tenants is None else self._tenants
        all_slots = slots_between(spec.timing, self._rests[0], self._rests[-1], MOST)
        rows = await self._rows(name)
        # A pause stops what is made for many tenants, and is under way.
        stopped = {row.at for row in rows if spec.for_tenants is not None and row.because == _STOPPED}
        slots = [
            at
            for at in all_slots
            if at not in stopped and not any(blank.after < at <= blank.until for blank in blanks)
        ]
        made = {at for schedule, _, at in jobs if schedule == name} - stopped
        self.wrong += [f"{name}: {at} is no slot, or one of a pause" for at in sorted(made - {*slots})]
        self.wrong += [
            f"{name}: slot {at} has no job for {tenant}"
            for at in sorted(made | self._needed(spec, slots))
            for tenant in tenants
            if not jobs[name, tenant, at]
        ]
        self.wrong += [
            f"{name}: slot {row.at} is {row.state}: {row.because}"
            for row in rows
            if row.state not in _ENDED and row.at not in stopped
        ]
        enqueued = {row.at for row in rows if row.state == "enqueued"}
        if enqueued != made:
            self.wrong.append(f"{name}: jobs and slots differ at {sorted(enqueued ^ made)[:3]}")
        missed = sum(row.missed + (row.state == "missed") for row in rows)
        if len(enqueued) + missed != len(slots):
            self.wrong.append(f"{name}: {len(enqueued)} taken and {missed} missed of {len(slots)} slots")
        self.figures.update(slots=len(enqueued), missed=missed)

    def _needed(self, spec: ScheduleSpec, slots: Sequence[Instant]) -> set[Instant]:
        """Return the slots that must have been taken, whatever was killed between two looks at everything."""
        found: set[Instant] = set()
        for before, now in pairwise(self._rests):
            due = [at for at in slots if before < at <= now]
            in_time = [at for at in due if at > now - MINUTE]
            late = [at for at in due if now - spec.look_back < at <= now - MINUTE]
            most = {"skip": 0, "latest": 1}.get(spec.catch_up, spec.catch_up)  # type: ignore[arg-type]
            wanted = max(0, int(most) - len(in_time))
            found.update(in_time, late[len(late) - wanted :] if wanted < len(late) else late)
        return found

    async def _rows(self, name: str) -> list[SlotRow]:
        rows: list[SlotRow] = []
        while True:
            before = rows[-1].at if rows else None
            request = SlotsRequest(scope=ALL, schedule=name, before=before, limit=MAX_PAGE_SIZE)
            page = await self._world.store.schedules.slots(request)
            rows += page
            if len(page) < MAX_PAGE_SIZE:
                return rows
