"""`fairlane doctor findings`, and the thresholds of `[doctor]`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane import Fairlane
from fairlane.app.doctor_settings import DoctorSettings
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.snapshot import StoreSnapshot, take_snapshot
from fairlane.duties.diagnose import Diagnose
from fairlane.model.policy.pressure import StoreSize
from tests.cli.commands.test_doctor import HERE, healthy, lead, start
from tests.cli.shell import Shell
from tests.contract.world import World
from tests.duties.test_diagnose import duty_of
from tests.duties.test_passes import Beside


def test_past_findings_are_listed_with_their_begin_and_end(store: Shell) -> None:
    """Lasting ones alone on request; as JSON with the advice."""

    async def scene(world: World) -> None:
        await healthy(world)
        duty: Diagnose = duty_of(world, max_ready=0)
        assert isinstance(duty, Diagnose)
        await duty(world.store)
        world.advance(60)
        await start(world)
        await start(world, "w2", version="0.0.1")
        await lead(world)
        await world.claim_one()
        await duty(world.store)

    assert store.output_of("doctor", "findings") == "No problem was found.\n"
    store.in_store(scene)
    listed = store.output_of("doctor", "findings").splitlines()
    assert listed[0].split() == ["LEVEL", "CHECK", "BEGAN", "ENDED", "FINDING"]
    depth = next(line for line in listed if " depth " in line)
    assert depth.endswith("1m ago  now    queue default: 1 jobs are ready, more than 0.")
    found = store.run("doctor", "findings", "--lasting", "--json").objects
    assert [one["check"] for one in found if one["check"] in {"depth", "versions"}] == ["versions"]
    (versions,) = [one for one in found if one["check"] == "versions"]
    assert versions["ended_at"] is None
    assert versions["advice"] == "This is fine during a rollout; complete it."


def test_the_list_of_problems_belongs_to_the_checks(store: Shell) -> None:
    """An option of the command before its subcommand would have no effect."""
    ran = store.run("doctor", "--problems", "findings")
    assert (ran.code, "belong to `fairlane doctor` alone" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("thresholds", "inspection", "wanted"),
    [
        ({"max_ready": 0}, {}, [("warn", "queue default: 1 jobs are ready, more than 0.")]),
        ({"max_ready": 1}, {}, []),
        ({"max_ready": None}, {}, []),
        (
            {"max_memory": 500 * 2**20},
            {"memory": 501 * 2**20},
            [("warn", "the server uses 501 MB of memory, more than 500 MB.")],
        ),
        ({}, {"memory": 500 * 2**20}, []),
        ({"max_memory": None}, {"memory": 2**40}, []),
        (
            {},
            {"clients": 0},
            [("bad", "nobody else is connected to the server; at least 1 should be.")],
        ),
        (
            {"min_clients": 3},
            {"clients": 2},
            [("bad", "only 2 other connections are connected to the server; at least 3 should be.")],
        ),
        ({"min_clients": 0}, {"clients": 0}, []),
        ({"min_workers": 1}, {}, []),
        ({"min_workers": 2}, {}, [("bad", "only 1 of 2 workers are live, and 1 jobs are ready.")]),
    ],
    ids=str,
)
def test_the_thresholds_are_those_that_are_configured(
    store: Shell, thresholds: dict[str, Any], inspection: dict[str, Any], wanted: list[tuple[str, str]]
) -> None:
    """Above them there is a finding, at them there is none."""

    async def take(world: World) -> StoreSnapshot:
        await healthy(world)
        async with Fairlane(store.url) as app:
            return await take_snapshot(app.client.store, Beside(world))

    snapshot = store.in_store(take)
    inspected = msgspec.structs.replace(snapshot.inspection, **inspection)
    settings = DoctorSettings(**thresholds)
    found = run_checks(msgspec.structs.replace(snapshot, inspection=inspected), HERE, settings)
    assert [(one.level, one.what) for one in found if one.level != "ok"] == wanted


def test_the_thresholds_come_from_the_file(store: Shell) -> None:
    """`fairlane doctor` itself reads them."""
    store.in_store(healthy)
    store.write("fairlane.toml", "[doctor]\nmax_ready = 0\n")
    ran = store.run("doctor", "--problems", "--json", "--config", str(store.folder / "fairlane.toml"))
    assert [one["check"] for one in ran.objects] == ["depth"]


def test_how_full_a_store_is_comes_with_what_happens(store: Shell) -> None:
    """S126: by the smaller limit, of the settings or of the server; nothing is said without one."""

    async def take(world: World) -> StoreSnapshot:
        await healthy(world)
        async with Fairlane(store.url) as app:
            return await take_snapshot(app.client.store, Beside(world))

    snapshot = store.in_store(take)

    def said(size: StoreSize | None, store_limit: int | None = None) -> list[tuple[str, str]]:
        inspected = msgspec.structs.replace(snapshot.inspection, size=size)
        changed = msgspec.structs.replace(snapshot, inspection=inspected)
        found = run_checks(changed, HERE, DoctorSettings(), store_limit=store_limit)
        return [(one.level, one.what) for one in found if one.check == "size"]

    megabyte, early = 2**20, "its oldest history is removed before its time."
    assert said(None, 1) == said(StoreSize(5)) == []
    assert said(StoreSize(80 * megabyte, 100 * megabyte)) == [
        ("ok", "the store takes 80 MB of 100 MB (80 %)")
    ]
    warned = ("warn", f"the store takes 81 MB of 100 MB (81 %): above 85 % {early}")
    assert said(StoreSize(81 * megabyte, 200 * megabyte), 100 * megabyte) == [warned]
    critical = ("bad", f"the store takes 90 MB of 100 MB (90 %): {early}")
    assert said(StoreSize(90 * megabyte, 100 * megabyte), 200 * megabyte) == [critical]


def test_the_limit_of_the_store_comes_from_the_file(store: Shell) -> None:
    """S126: a file of SQLite is larger than a kilobyte."""
    store.in_store(healthy)
    store.write("fairlane.toml", "[retention]\nstore_limit = '1KB'\n")
    ran = store.run("doctor", "--problems", "--json", "--config", str(store.folder / "fairlane.toml"))
    assert [(one["check"], one["level"]) for one in ran.objects] == [("size", "bad")]
