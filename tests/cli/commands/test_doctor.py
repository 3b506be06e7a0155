"""`fairlane doctor`: what it says of a healthy store, and of each thing that can be wrong with one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
import pytest

from fairlane import Fairlane
from fairlane.app.doctor_settings import DoctorSettings
from fairlane.cli.store_location import check_location, check_space
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot, take_snapshot
from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.model.journal.memory import AuditMemory, EventMemory, Subscriber, encode_memory
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.journal import NumberRequest, PendingRequest
from fairlane.store.contract.registry import (
    HeartbeatRequest,
    LeadRequest,
    RegisterRequest,
    TaskRecord,
    WorkerRecord,
)
from tests.cli.shell import Shell
from tests.contract.world import ALL, World

HERE: Final = version("fairlane")
NOOP: Final = TaskRecord(name="noop", queue="default", aliases=("nothing",))


async def start(
    world: World, worker: str = "w1", *, queues: tuple[str, ...] = ("default",), **record: Any
) -> None:
    """Start a worker of this version that knows the usual task."""
    values: dict[str, Any] = {
        "host": "here",
        "pid": 7,
        "version": HERE,
        "slots": 16,
        "tasks": (NOOP,),
        **record,
    }
    request = RegisterRequest(
        scope=ALL, record=WorkerRecord(id=worker, queues=queues, **values), renew_every=4 * SECOND
    )
    await world.store.registry.register(request)


async def lead(world: World, worker: str = "w1", lease: int = 12 * SECOND) -> None:
    """Let a worker lead the duties."""
    await world.store.registry.lead(LeadRequest(scope=ALL, name="duties", worker=worker, lease=lease))


async def healthy(world: World) -> None:
    """One worker that leads, one job that waits and one that runs."""
    await start(world)
    await lead(world)
    await world.enqueue_many(2)
    await world.claim_one()


def test_a_healthy_store_is_described_line_by_line(store: Shell) -> None:
    """The whole answer; nothing is left to do."""
    store.in_store(healthy)
    schema = store.run("migrate", "--json").objects[0]["after"]
    lines = store.output_of("doctor").splitlines()
    assert lines[3].startswith("ok     disk      ")
    del lines[2:4]  # how large the file is and how much space is free
    assert lines == [
        "LEVEL  CHECK     FINDING",
        f"ok     url       a sqlite store in {store.file}",
        f"ok     schema    version {schema}, which this Fairlane needs",
        "ok     settings  an acknowledged job survives a power cut (synchronous=full)",
        f"ok     library   SQLite {apsw.sqlite_lib_version()}",
        "ok     damage    no damage found",
        "ok     clock     the store and this machine agree",
        "ok     workers   1 live, 16 slots",
        f"ok     versions  Fairlane {HERE} everywhere",
        "ok     queues    every queue is served",
        "ok     lead      duties: led by w1",
        "ok     leases    no expired lease is left",
        "ok     tasks     every task with unfinished jobs is known to a worker",
        "ok     waiting   queue default: 1 ready, the next has waited for 0s",
        "ok     events    all events are told, and the audit is sealed",
        "ok     slots     every worker runs the jobs that the store says it runs",
        "ok     counters  the counters of 1 of 1 tenants with unfinished jobs are correct",
    ]
    assert store.output_of("doctor", "--problems") == "No problems found.\n"


Scene = Callable[[World], Awaitable[object]]


async def nobody(world: World) -> None:
    """Jobs, and no worker."""
    await world.enqueue_many(3)


async def another_application(world: World) -> None:
    """Two applications have a task of one name and serve one queue."""
    await lead(world, "w-shop")
    for name in ("shop", "billing"):
        task = msgspec.structs.replace(NOOP, module=f"{name}.jobs")
        await start(world, f"w-{name}", labels=(f"app={name}",), tasks=(task,))


async def unversioned_change(world: World) -> None:
    """One application, old and new, with other arguments in the same version."""
    await healthy(world)
    await start(world, "w2", tasks=(msgspec.structs.replace(NOOP, schema=b'{"to":1}'),))


async def rollout(world: World) -> None:
    """Old and new workers know a task in two versions."""
    await healthy(world)
    await start(world, "w2", tasks=(msgspec.structs.replace(NOOP, version=2, schema=b'{"to":1}'),))


async def gone(world: World) -> None:
    """The leader died a minute ago with a claim in its hands; it had taken the lead for long."""
    await start(world)
    await lead(world, lease=5 * MINUTE)
    await world.enqueue()
    await world.claim_one()
    world.advance(60)
    await start(world, "w2")


async def unserved(world: World) -> None:
    """A queue with jobs and another one without that no worker has in a lane."""
    await healthy(world)
    await world.declare(SubjectKind.QUEUE, "mail", QueueRules())
    await world.enqueue(queue="bulk")


async def retiring(world: World) -> None:
    """The only worker is on its way out."""
    await healthy(world)
    beat = HeartbeatRequest(scope=ALL, worker="w1", state="draining", renew_every=4 * SECOND)
    await world.store.registry.heartbeat(beat)


async def leaderless(world: World) -> None:
    """The lead ran out."""
    await healthy(world)
    world.advance(13)
    beat = HeartbeatRequest(scope=ALL, worker="w1", state="busy", renew_every=4 * SECOND, running=1)
    await world.store.registry.heartbeat(beat)


async def mixed(world: World) -> None:
    """Half of a rollout."""
    await healthy(world)
    await start(world, "w0", version="0.0.1")


async def unknown(world: World) -> None:
    """A task that was renamed."""
    await healthy(world)
    await world.enqueue(task="nothing")
    await world.enqueue(task="old_name")


async def late(world: World) -> None:
    """A job that has waited for twenty minutes."""
    await healthy(world)
    world.advance(20 * 60)
    await start(world)
    await lead(world)
    await world.reclaim()


async def flooded(world: World) -> None:
    """Two workers are full, and others' jobs wait for 14 seconds."""
    await start(world, slots=2, headroom=1)
    await start(world, "w2", slots=2, headroom=1)
    await lead(world)
    for tenant in ("a", "b", "c", "d"):
        await world.enqueue(tenant)
    await world.claim(2)
    world.advance(14)
    await start(world, slots=2, headroom=1)
    await start(world, "w2", slots=2, headroom=1)
    await lead(world)
    await world.reclaim()
    await world.claim(2)


async def ignored(world: World) -> None:
    """A worker runs nothing, and jobs of two tenants that might start wait for 14 seconds."""
    await start(world)
    await lead(world)
    await world.enqueue("a")
    await world.enqueue("b")
    world.advance(14)
    await start(world)
    await lead(world)


async def backlogged(world: World) -> None:
    """One tenant's jobs have waited for a minute behind its own."""
    await start(world, slots=1)
    await lead(world)
    await world.enqueue_many(9)
    world.advance(60)
    await start(world, slots=1)
    await lead(world)
    await world.claim_one()


async def forgotten(world: World) -> None:
    """A forgotten pause."""
    await healthy(world)
    await world.pause(SubjectKind.QUEUE, "bulk")
    await world.close(SubjectKind.QUEUE, "mail")
    await world.pause(SubjectKind.TASK, "fax")


async def anonymous(world: World) -> None:
    """Most enqueues name no tenant."""
    await healthy(world)
    await world.enqueue_many(3, tenant="system")


async def unnumbered(world: World) -> None:
    """What happened and what operators did waits for its number."""
    await healthy(world)
    for journal in ("events", "audit"):
        await world.append(journal, NewEntry(kind="some"))
    world.advance(61)
    await start(world)
    await lead(world)
    await world.reclaim()


async def behind(world: World) -> None:
    """A subscriber is too far behind: of the new events, some were lost, and some of them were told."""
    await healthy(world)
    await world.append("events", *(NewEntry(kind="events_lost", subject=str(one), count=4) for one in (1, 2)))
    memory = EventMemory(subscribers={"page": Subscriber(0, world.now), "log": Subscriber(2, 0)}, lost=3)
    await store_memory(world, "events", encode_memory(memory))
    world.advance(120)
    await start(world)
    await lead(world)
    await world.reclaim()


async def under_another_key(world: World) -> None:
    """The audit was sealed under a key that is not this process's."""
    await healthy(world)
    await store_memory(world, "audit", encode_memory(AuditMemory().with_key(b"a key", 0)))
    await world.append("audit", NewEntry(kind="some"))
    world.advance(61)
    await start(world)
    await lead(world)
    await world.reclaim()


async def store_memory(world: World, journal: JournalName, memory: bytes) -> None:
    """Number what waits in a journal, and leave this memory there."""
    waiting = await world.store.journal.pending(PendingRequest(scope=ALL, journal=journal))
    entries = tuple(Entry(number, one.at, one.entry) for number, one in enumerate(waiting.entries, 1))
    request = NumberRequest(
        scope=ALL,
        journal=journal,
        revision=waiting.end.revision,
        taken=tuple(one.place for one in waiting.entries),
        entries=entries,
        memory=memory,
    )
    assert await world.store.journal.number(request)


FINDINGS: Final[dict[str, tuple[Scene, int, list[str]]]] = {
    "no worker": (
        nobody,
        1,
        [
            "bad workers: no worker is live, and 3 jobs are ready.",
            "warn tasks: no worker of the last hour knows noop, which has unfinished jobs.",
        ],
    ),
    "a dead leader": (
        gone,
        1,
        [
            "warn workers: w1 sent its last heartbeat 1m ago.",
            "bad lead: duties: led by w1, whose last heartbeat was 1m ago.",
            "bad leases: a running job's lease expired 48s ago, and no worker has reclaimed the job.",
        ],
    ),
    "queues without a lane": (
        unserved,
        1,
        [
            "bad queues: no live worker serves queue bulk, which has 1 ready jobs.",
            "warn queues: queue mail is declared, but no live worker serves it.",
        ],
    ),
    "a worker that drains": (
        retiring,
        1,
        ["bad queues: no live worker serves queue default, which has 1 ready jobs."],
    ),
    "no leader": (
        leaderless,
        0,
        ["warn lead: no worker leads the duties: due jobs, expired leases and old history are not handled."],
    ),
    "two versions": (
        mixed,
        0,
        [f"warn versions: several versions of Fairlane are in use: 0.0.1, {HERE}; this is {HERE}."],
    ),
    "an unknown task": (
        unknown,
        1,
        ["bad tasks: no worker of the last hour knows old_name, which has unfinished jobs."],
    ),
    "two applications": (
        another_application,
        1,
        [
            (
                "bad tasks: task noop is declared by application 'billing' and by 'shop' "
                "(module billing.jobs, module shop.jobs)."
            )
        ],
    ),
    "a change without a version": (
        unversioned_change,
        0,
        ["warn tasks: task noop is declared twice by application '' (other arguments in version 1)."],
    ),
    "two versions of a task": (
        rollout,
        0,
        ["warn tasks: live workers have task noop in versions 1, 2."],
    ),
    "a long wait": (late, 0, ["warn waiting: queue default: 2 ready, the next has waited for 20m"]),
    "more work than slots": (
        flooded,
        0,
        [
            (
                "warn capacity: queue default: the next jobs, of 2 tenants, have waited for up to 14s "
                "while 2 of 4 slots of 2 workers are busy and 2 kept as headroom."
            )
        ],
    ),
    "workers that do not take what is there": (
        ignored,
        0,
        [
            (
                "warn capacity: queue default: the next jobs, of 2 tenants, have waited for up to 14s "
                "while 0 of 16 slots of 1 worker are busy."
            )
        ],
    ),
    "one tenant's own backlog, which is nothing to tell": (backlogged, 0, []),
    "a forgotten pause": (
        forgotten,
        0,
        [
            "warn pauses: queue bulk was paused now by ops: maintenance",
            "warn pauses: queue mail was closed now by ops: maintenance",
            "warn pauses: task fax was paused now by ops: maintenance",
        ],
    ),
    "entries without a number": (
        unnumbered,
        0,
        [
            "warn events: events wait for their numbers; the oldest was appended 1m 1s ago.",
            "warn audit: entries of the audit wait for their numbers; the oldest was appended 1m 1s ago.",
        ],
    ),
    "a subscriber that is behind": (
        behind,
        0,
        [
            "warn events: 11 events were lost: a subscriber was too far behind for them to be kept.",
            "warn events: subscriber page is 2 events behind; the first is from 2m ago.",
        ],
    ),
    "an audit under another key": (
        under_another_key,
        0,
        ["warn audit: entries of the audit wait for their numbers; the oldest was appended 1m 1s ago."],
    ),
    "no tenants named": (
        anonymous,
        0,
        ["warn tenants: tenant system has 3 of 5 jobs, more than all others."],
    ),
}
"""Each thing that can be wrong: how it comes about, the exit code, and all that is then not well."""


@pytest.mark.parametrize("case", FINDINGS)
def test_each_thing_that_is_wrong_is_found_and_nothing_else(store: Shell, case: str) -> None:
    """With its level, and with an advice for everything that is not well."""
    scene, code, wanted = FINDINGS[case]
    store.in_store(scene)
    ran = store.run("doctor", "--json", "--problems")
    assert [f"{one['level']} {one['check']}: {one['what']}" for one in ran.objects] == wanted
    assert ran.code == code
    assert all(one["advice"].endswith(".") for one in ran.objects)


def test_the_advice_stands_below_the_table_for_people(store: Shell) -> None:
    """What is wrong once more, and what to do."""
    store.in_store(nobody)
    ran = store.run("doctor", "--problems")
    assert ran.code == 1
    assert ran.out.startswith(
        "LEVEL  CHECK    FINDING\nbad    workers  no worker is live, and 3 jobs are ready.\n"
    )
    assert (
        "\nbad: no worker is live, and 3 jobs are ready.\n  Start one with `fairlane worker MODULE:APP`.\n"
        in ran.out
    )


@pytest.mark.parametrize(
    ("skew", "code", "wanted"),
    [
        (2, 0, "warn clock: the store's clock is 2s behind this machine's."),
        (-2, 0, "warn clock: the store's clock is 2s ahead of this machine's."),
        (7, 1, "bad clock: the store's clock is 7s behind this machine's."),
    ],
)
def test_clocks_that_disagree_are_found(
    store: Shell, monkeypatch: pytest.MonkeyPatch, skew: int, code: int, wanted: str
) -> None:
    """The store's against this machine's."""
    store.in_store(healthy)
    monkeypatch.setattr(MachineClock, "wall", lambda _: store.clock.now() + skew * SECOND)
    ran = store.run("doctor", "--json", "--problems")
    assert (ran.code, [f"{one['level']} {one['check']}: {one['what']}" for one in ran.objects]) == (
        code,
        [wanted],
    )


@pytest.mark.parametrize(
    ("url", "check"),
    [("carrier-pigeon://loft", "url"), ("sqlite:///not/there.db", "file"), ("sqlite:///", "url")],
)
def test_a_store_that_is_not_there_is_a_finding_and_is_not_made(shell: Shell, url: str, check: str) -> None:
    """The checks behind it are left out."""
    ran = shell.run("doctor", "--json", "--problems", url=url)
    assert ran.code == 1
    assert [(one["level"], one["check"]) for one in ran.objects] == [("bad", check)]
    assert list(shell.folder.iterdir()) == []


def test_an_old_and_a_new_schema_are_told_apart(store: Shell) -> None:
    """Each with what to do."""
    for number, advice in ((99, "Upgrade Fairlane here"), (0, "Run `fairlane migrate`.")):
        db = apsw.Connection(str(store.file))
        db.pragma("user_version", number)
        db.close()
        (told,) = store.run("doctor", "--json", "--problems").objects
        assert (told["level"], told["check"]) == ("bad", "schema")
        assert told["advice"].startswith(advice)


def test_a_file_of_somebody_else_is_found(shell: Shell) -> None:
    """And nothing more is looked at."""
    shell.file.write_text("no database, but long enough to be looked at. " * 40)
    shell.file.chmod(0o600)
    (told,) = shell.run("doctor", "--json", "--problems").objects
    assert (told["level"], told["check"]) == ("bad", "store")


def test_a_counter_that_is_wrong_is_found(store: Shell) -> None:
    """Both books: those that are shown and those that limits are compared with."""
    store.in_store(healthy)
    db = apsw.Connection(str(store.file))
    db.execute("UPDATE tenant_queue SET delayed = delayed + 5")
    db.close()
    ran = store.run("doctor", "--json", "--problems")
    told = [(one["level"], one["check"], one["what"]) for one in ran.objects if one["check"] == "counters"]
    assert told == [
        ("bad", "counters", f"tenant acme: counted {counted}")
        for counted in (
            "5 delayed in queue default, there are 0.",
            "6 waiting for the limits of queue default, there are 1.",
        )
    ]
    assert ran.code == 1


def test_rights_and_space_are_judged_before_anything_is_opened(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be written, and a disk that is nearly full."""
    shell.run("migrate")
    monkeypatch.setattr("os.access", lambda place, _: Path(place) != shell.folder)
    why = f"this user may not write to its folder {shell.folder}, where SQLite keeps its log"
    assert check_location(shell.url)[-1] == CheckResult(
        "file",
        "bad",
        f"{shell.file} cannot be read and written: {why}.",
        "Give this user read and write permission on the file and its folder, on a writable disk.",
    )
    levels = [check_space(shell.folder, free * 2**20).level for free in (99, 100, 1023, 1024)]
    assert levels == ["bad", "warn", "warn", "ok"]


def seen(shell: Shell, **inspection: Any) -> list[CheckResult]:
    """Check a healthy store with these values of its inspection; return the problems."""

    async def take(_: World) -> StoreSnapshot:
        async with Fairlane(shell.url) as app:
            return await take_snapshot(app.client.store, app.client.clock)

    sight = shell.in_store(take)
    changed = msgspec.structs.replace(sight.inspection, **inspection)
    findings = run_checks(msgspec.structs.replace(sight, inspection=changed), HERE, DoctorSettings())
    return [finding for finding in findings if finding.level != "ok"]


@pytest.mark.parametrize(
    ("options", "level", "what"),
    [
        ({"damage": ("page 7 is lost",)}, "bad", "the file is damaged: page 7 is lost"),
        ({"damage": ("a", "b", "c", "d")}, "bad", "the file is damaged: a; b; c and 1 more"),
        ({"is_checked": False}, "warn", "the file is too large to check in a few seconds."),
        (
            {"settings": {"sqlite": "3.45.1"}},
            "bad",
            "SQLite 3.45.1 can corrupt a file that several processes share.",
        ),
        (
            {"settings": {"journal_mode": "wal", "synchronous": "normal"}},
            "warn",
            "synchronous is normal: a power cut may lose the most recent changes.",
        ),
        (
            {"settings": {"journal_mode": "delete", "synchronous": "full"}},
            "bad",
            "the journal mode is delete, not wal: readers block the writer.",
        ),
    ],
)
def test_what_a_store_says_of_itself_is_judged(
    store: Shell, options: dict[str, Any], level: str, what: str
) -> None:
    """Damage, an old library, settings that lose jobs."""
    store.in_store(healthy)
    (finding,) = seen(store, **options)
    assert (finding.level, finding.what) == (level, what)


def test_a_store_without_files_has_nothing_to_say_of_them(store: Shell) -> None:
    """Other stores have other settings, and none of these."""
    store.in_store(healthy)
    assert seen(store, settings={}) == []


def test_many_silent_workers_are_counted_instead_of_listed(store: Shell) -> None:
    """Five by name; a screen is not for a hundred."""

    async def work(world: World) -> None:
        for number in range(8):
            await start(world, f"old{number}")
        world.advance(HOUR / SECOND)
        await start(world)
        await lead(world)

    store.in_store(work)
    told = [one["what"] for one in store.run("doctor", "--json", "--problems").objects]
    assert len(told) == 6
    assert told[-1] == "3 more are silent."


def test_looking_changes_nothing(store: Shell) -> None:
    """It may be run on a store in use."""
    store.in_store(unserved)
    before = store.in_store(lambda world: world.sight())
    store.run("doctor")
    assert store.in_store(lambda world: world.sight()) == before


@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o600, None), (0o660, None), (0o644, "every user of this machine can read"), (0o606, "can change")],
)
def test_a_file_that_everybody_may_read_is_warned_of(store: Shell, mode: int, words: str | None) -> None:
    """Jobs hold what their arguments hold; what Fairlane makes is its owner's alone."""
    store.file.chmod(mode)
    found = [one for one in check_location(store.url) if one.check == "access"]
    assert [one.level for one in found] == ([] if words is None else ["warn"])
    assert words is None or (words in found[0].what and "chmod o-rwx" in found[0].advice)
