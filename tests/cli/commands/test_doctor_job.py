"""`fairlane doctor job` and `fairlane doctor --repair`."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from fairlane.model.instants import HOUR, MINUTE
from fairlane.model.policy.overrides import SubjectKind
from tests.cli.commands.test_doctor import healthy, start
from tests.cli.shell import Shell
from tests.contract.world import World


def damage(shell: Shell, statement: str) -> None:
    """Change the file behind the store's back."""
    with apsw.Connection(str(shell.file)) as other:
        other.execute(statement)


def checks(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return level and text of each check; of several results of one the last."""
    return {one["check"]: (one["level"], one["what"]) for one in found["checks"]}


def diagnosis(shell: Shell, id: object, code: int = 0) -> dict[str, Any]:
    """Return the diagnosis of a job."""
    ran = shell.run("doctor", "job", str(id), "--json")
    assert (ran.code, ran.err) == (code, "")
    return ran.objects[0]


def test_a_job_that_is_well_is_described_check_by_check(store: Shell) -> None:
    """Where it is, whether its task is known, what leads to it, and whose turn it is."""

    async def scene(world: World) -> object:
        await start(world)
        return (await world.enqueue()).id

    id = store.in_store(scene)
    assert store.output_of("doctor", "job", str(id)).splitlines() == [
        f"Job {id} of task noop, tenant acme, queue default.",
        "LEVEL  CHECK    FINDING",
        "ok     record   it is ready, among the unfinished jobs, enqueued now",
        "ok     task     a worker knew noop now",
        "ok     derived  its place and the counters of acme in default fit all 1 unfinished jobs",
        "ok     reason   turn (queue default)",
    ]
    assert diagnosis(store, id)["suggested_actions"] == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("DELETE FROM ready", "is in no list: nothing finds it."),
        ("UPDATE tenant_queue SET ready = 7", "7 jobs are counted as ready, there are 1."),
        ("UPDATE tenant_queue SET is_ready = 0", "the tenant has no place in the fair order."),
    ],
)
def test_an_inconsistency_of_a_job_is_found_and_its_repair_suggested(
    store: Shell, statement: str, finding: str
) -> None:
    """And when it was repaired, nothing is found any more."""

    async def scene(world: World) -> object:
        await start(world)
        return (await world.enqueue()).id

    id = store.in_store(scene)
    damage(store, statement)
    found = diagnosis(store, id, code=1)
    level, what = checks(found)["derived"]
    assert (level, what.endswith(finding)) == ("bad", True)
    assert "`fairlane doctor --repair` makes it anew from the jobs." in found["suggested_actions"]
    assert store.run("doctor", "--repair", "--yes", "--json").objects[0]["is_restored"]
    assert checks(diagnosis(store, id))["derived"][0] == "ok"


async def lost(world: World) -> object:
    """A worker died with a job, and nobody does the duties."""
    await start(world)
    job = await world.enqueue()
    await world.claim_one(worker="w1")
    world.advance(60)
    return job.id


async def stuck(world: World) -> object:
    """A handler hangs, and its worker renews and renews."""
    await start(world)
    job = await world.enqueue(timeout=MINUTE)
    claim = await world.claim_one(worker="w1")
    for _ in range(40):
        world.advance(4)
        await world.beat("w1")
        await world.renew(claim)
    return job.id


async def paused(world: World) -> object:
    """Somebody has paused the queue."""
    await start(world)
    await world.pause(SubjectKind.QUEUE, "default")
    return (await world.enqueue()).id


async def dead(world: World) -> object:
    """It died."""
    return (await world.die()).id


async def unknown(world: World) -> object:
    """A worker lives, and none has the task."""
    await start(world)
    return (await world.enqueue(task="old_name", delay=HOUR)).id


@pytest.mark.parametrize(
    ("scene", "check", "level", "what", "action"),
    [
        (
            lost,
            "claim",
            "bad",
            "its lease ended 48s ago, and nobody has reclaimed it.",
            "fairlane jobs take-back",
        ),
        (stuck, "stuck", "bad", "it has run for 2m 40s, longer than 2m.", "fairlane jobs fail"),
        (paused, "reason", "warn", "paused (queue default paused by ops: maintenance)", "Resume it"),
        (dead, "reason", "warn", "it is dead: ", "fairlane dead reprocess"),
        (unknown, "task", "bad", "no worker of the last hour knows task old_name.", "Start a worker"),
    ],
)
def test_each_reason_why_a_job_does_not_run_has_an_action(
    store: Shell, scene: Any, check: str, level: str, what: str, action: str
) -> None:
    """With the command that ends it."""
    id = store.in_store(scene)
    found = diagnosis(store, id, code=int(level == "bad"))
    seen = checks(found)[check]
    assert (seen[0], seen[1].startswith(what)) == (level, True), seen
    assert any(action in one for one in found["suggested_actions"])


def test_an_unknown_job_is_an_error(store: Shell) -> None:
    """As everywhere."""
    ran = store.run("doctor", "job", "01890a5d-ac96-774b-bcce-b302099a8057")
    assert (ran.code, "no job" in ran.err) == (3, True)


def test_repair_shows_first_asks_and_says_what_it_did(store: Shell) -> None:
    """Without a terminal nothing is changed unless --yes is given; the audit has who, and the note."""

    async def scene(world: World) -> None:
        await healthy(world)
        await world.enqueue_many(7)

    store.in_store(scene)
    assert store.output_of("doctor", "--repair") == "Nothing to repair.\n"
    damage(store, "DELETE FROM ready")
    shown = store.run("doctor", "--repair", "--dry-run")
    assert shown.code == 1
    assert shown.out.count("is in no list: nothing finds it") == 5
    assert "and 3 more" in shown.out
    refused = store.run("doctor", "--repair")
    assert (refused.code, "confirm with --yes" in refused.err) == (2, True)
    assert refused.out == shown.out
    done = store.run("doctor", "--repair", "--yes", "--note", "after the restore", "--as", "ann")
    assert (done.code, done.err) == (0, "")
    assert done.out == shown.out.replace(" no        ", " yes       ")
    assert store.output_of("doctor", "--repair") == "Nothing to repair.\n"
    (entry,) = store.run("audit", "list", "--kind", "doctor.repair", "--json").objects
    assert (entry["actor"], entry["note"], entry["subject"]) == ("ann", "after the restore", "queue default")


def test_the_accounts_of_budgets_are_repaired_with_the_rest(store: Shell) -> None:
    """S125: what is wrong is said in amounts."""

    async def scene(world: World) -> None:
        await healthy(world)
        await world.put_budget("ai", "tag", ceiling=9_000_000, estimate=2_500_000)
        await world.enqueue_many(2, task="tag")
        await world.claim(9)

    store.in_store(scene)
    damage(store, "UPDATE budget_account SET reserved = 0")
    (found,) = store.run("doctor", "--repair", "--dry-run", "--json").objects
    assert found["what"] == "budget ai reserves 0.00, its running jobs have reserved 5.00"
    (done,) = store.run("doctor", "--repair", "--yes", "--json").objects
    assert done == {**found, "is_restored": True}
    assert store.output_of("doctor", "--repair") == "Nothing to repair.\n"


@pytest.mark.parametrize("options", [("--yes",), ("--dry-run",), ("--note", "why")])
def test_an_option_of_repair_alone_is_refused(store: Shell, options: tuple[str, ...]) -> None:
    """It would have no effect."""
    ran = store.run("doctor", *options)
    assert (ran.code, "belong to --repair" in ran.err) == (2, True)
