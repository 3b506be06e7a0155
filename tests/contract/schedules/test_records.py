"""Schedules as a store keeps them (S54, S57)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.records import ScheduleOverride, ScheduleRecord
from fairlane.model.schedule.timing import At, Cron
from fairlane.model.scope import Scope
from fairlane.store.contract.schedules import (
    MAX_SCHEDULE_CHANGES,
    MAX_SLOTS,
    ScheduleChange,
    SchedulesFindRequest,
)
from tests.contract.schedules.scene import (
    OPERATION,
    SERVING_ALL,
    due,
    find,
    keep,
    names,
    new,
    put,
    record,
    slots,
    spec,
    write,
)
from tests.contract.world import ALL, World


async def test_a_schedule_is_kept_as_it_was_given(world: World) -> None:
    """S57: with every field, and the store's instant; found in the order of the names."""
    at = world.now
    cron = Cron(expression="0 9 * * MON", timezone="America/New_York", between=("09:00", "10:00"))
    override = ScheduleOverride(spec=spec(timing=cron), who="ann", set_at=at)
    kept = [
        record(override=override, paused=Hold(who="ann", reason="so", set_at=at, until=at + 9), next_at=at),
        record("once", declared=spec("once", timing=At(instant=at), for_tenants={"plan": "pro"}, spread=9)),
        ScheduleRecord(name="plain", watched=(world.new().id,), failures=2, problem="why", zones="2025b"),
    ]
    assert await write(world, *map(put, kept)) == (True, True, True)
    rows = await find(world, "plain", "once", "none", "nightly")
    assert [row.record for row in rows] == kept[::-1]
    assert {row.created_at for row in rows} == {at}
    assert all(row.revision > 0 for row in rows)
    reply = await world.store.schedules.find(SchedulesFindRequest(scope=ALL, names=()))
    assert (reply.rows, reply.now) == ((), world.now)


async def test_a_schedule_changes_only_for_who_knows_its_revision(world: World) -> None:
    """S57: of two who change it at the same time one has, and the other is told."""
    row = await keep(world, record())
    assert await write(world, put(record(problem="late"))) == (False,)
    assert await write(world, put(record(problem="first"), revision=row.revision)) == (True,)
    assert await write(world, put(record(problem="second"), revision=row.revision)) == (False,)
    (now,) = await find(world, "nightly")
    assert (now.record.problem, now.created_at) == ("first", row.created_at)
    assert now.revision > row.revision


async def test_each_change_stands_alone(world: World) -> None:
    """S57: one that is refused stops no other."""
    row = await keep(world, record("b"))
    changes = (put(record("a")), put(record("b"), revision=row.revision + 9), put(record("c")))
    assert await write(world, *changes) == (True, False, True)
    assert await names(world) == ["a", "b", "c"]
    assert await write(world) == ()


async def test_what_was_removed_and_made_again_has_another_revision(world: World) -> None:
    """S57: who knew the old one cannot change the new one."""
    before = await keep(world, record())
    assert await write(world, ScheduleChange(name="nightly", revision=before.revision)) == (True,)
    assert await find(world, "nightly") == []
    assert await write(world, put(record(), revision=before.revision)) == (False,)
    world.clock.advance(1)
    again = await keep(world, record())
    assert again.revision > before.revision
    assert again.created_at > before.created_at


async def test_of_many_who_make_a_schedule_one_has_made_it(world: World) -> None:
    """S57: at the same time, each with a slot of its own."""
    asked = [write(world, put(record(failures=one), new(one + 1))) for one in range(5)]
    made = await asyncio.gather(*asked)
    assert sorted(made) == [(False,)] * 4 + [(True,)]
    (row,) = await find(world, "nightly")
    assert [slot.at for slot in await slots(world)] == [row.record.failures + 1]


async def test_schedules_are_listed_by_name_in_pages(world: World) -> None:
    """S51: byte order; a page says where to go on."""
    for name in ("b", "a", "a.b", "b-1", "c"):
        await keep(world, record(name))
    assert await names(world) == ["a", "a.b", "b", "b-1", "c"]
    assert await names(world, limit=2) == ["a", "a.b"]
    assert await names(world, limit=2, after="a.b") == ["b", "b-1"]
    assert await names(world, after="c") == []
    with pytest.raises(ValueError, match="a page holds at most 1000"):
        await names(world, limit=1001)


async def test_what_is_due_comes_by_time_and_says_when_the_next_is(world: World) -> None:
    """S57: by the store's clock, at the instant itself, never before."""
    now = world.now
    assert (await due(world)).next_at is None
    for name, after in (("late", 5), ("b", 1), ("a", 1), ("first", 0)):
        await keep(world, record(name, next_at=now + after * SECOND))
    await keep(world, record("never"))
    reply = await due(world)
    assert [row.record.name for row in reply.rows] == ["first"]
    assert (reply.next_at, reply.now) == (now + SECOND, now)
    world.clock.advance(1)
    reply = await due(world)
    assert [row.record.name for row in reply.rows] == ["first", "a", "b"]
    assert (reply.next_at, reply.now) == (now + 5 * SECOND, now + SECOND)
    reply = await due(world, limit=2)
    assert [row.record.name for row in reply.rows] == ["first", "a"]
    assert reply.next_at == now + SECOND
    world.clock.advance(4)
    assert (await due(world)).next_at is None


async def test_what_is_skipped_is_due_all_the_same(world: World) -> None:
    """S108: who leaves the first ones to others is told that something is due."""
    now = world.now
    assert (await due(world, skip=1)).next_at is None
    await keep(world, record("never"))
    assert (await due(world, skip=1)).next_at is None
    for name, after in (("a", 0), ("b", 0), ("c", 0), ("late", 5)):
        await keep(world, record(name, next_at=now + after * SECOND))
    for skip, limit, found in ((0, 3, "abc"), (1, 1, "b"), (1, 9, "bc"), (2, 9, "c"), (3, 9, ""), (9, 9, "")):
        reply = await due(world, limit=limit, skip=skip)
        assert [row.record.name for row in reply.rows] == [*found]
        assert reply.next_at == (now if skip else now + 5 * SECOND)
    for skip in (-1, 3_001):
        with pytest.raises(ValueError, match=f"leaves out 0 to 3000 schedules, not {skip}"):
            await due(world, skip=skip)


async def test_a_changed_schedule_is_due_at_its_new_time_only(world: World) -> None:
    """S57: and one that is removed never."""
    await keep(world, record(next_at=world.now))
    row = await keep(world, record(next_at=world.now + SECOND))
    assert (await due(world)).rows == ()
    world.clock.advance(1)
    assert (await due(world)).rows == (row,)
    assert await write(world, ScheduleChange(name="nightly", revision=row.revision)) == (True,)
    assert ((await due(world)).rows, (await due(world)).next_at) == ((), None)


async def test_a_tenant_sees_its_own_schedules_only(world: World) -> None:
    """S9: of another tenant, or of many, there are none; nor their slots."""
    now = world.now
    await keep(world, record("own"), new(now))
    await keep(world, record("other", tenant="globex"), new(now, "globex"))
    await keep(world, record("many", declared=spec("many", for_tenants={})), new(now, None))
    scope = Scope("acme")
    assert await names(world, scope) == ["own"]
    assert [row.record.name for row in await find(world, "other", "own", "many", scope=scope)] == ["own"]
    assert [len(await slots(world, name, scope)) for name in ("own", "other", "many")] == [1, 0, 0]
    assert [len(await slots(world, name)) for name in ("own", "other", "many")] == [1, 1, 1]


async def test_a_schedule_that_changes_hands_is_listed_for_whose_it_is_now(world: World) -> None:
    """S9: an operator gives it to another tenant."""
    row = await keep(world, record())
    override = ScheduleOverride(spec=spec(tenant="globex"), who="ann", set_at=world.now)
    assert await write(world, put(record(override=override), revision=row.revision)) == (True,)
    assert [await names(world, Scope(tenant)) for tenant in ("acme", "globex")] == [[], ["nightly"]]


@pytest.mark.parametrize("verb", SERVING_ALL)
async def test_what_changes_schedules_serves_all_tenants_or_nobody(world: World, verb: str) -> None:
    """S9: under the scope of one it is refused in a sentence, and nothing has changed."""
    with pytest.raises(ValueError, match=r"serve all tenants: use Scope\.all\(\)"):
        await SERVING_ALL[verb](world, Scope("acme"))
    assert await names(world) == []
    await SERVING_ALL[verb](world, ALL)
    assert len(await names(world)) == (verb == "schedules.write")


async def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(world: World) -> None:
    """S57: each in one sentence."""
    refused = {
        "changes a schedule once": (put(record()), put(record())),
        "cannot be kept as other": (ScheduleChange(name="other", record=record()),),
        "not there cannot be removed": (ScheduleChange(name="nightly"),),
        "takes a slot once": (put(record(), new(1), new(1)),),
        "at most 100 schedules": tuple(put(record(f"s{one}")) for one in range(MAX_SCHEDULE_CHANGES + 1)),
        "at most 1000 slots": (put(record(), *(new(one) for one in range(MAX_SLOTS + 1))),),
    }
    for why, changes in refused.items():
        with pytest.raises(ValueError, match=why):
            await write(world, *changes)
    with pytest.raises(ValueError, match="at most 100 schedules"):
        await due(world, limit=101)
    assert await names(world) == []


async def test_the_audit_says_what_an_operator_has_changed(world: World) -> None:
    """S60: of arguments only that they are others; of what has not changed nothing."""
    declared = record(next_at=world.now)
    assert await write(world, put(declared), operation=OPERATION) == (True,)
    row = await keep(world, declared)
    paused = msgspec.structs.replace(
        declared, paused=Hold(who="ann", reason="so", set_at=world.now), next_at=None, failures=1
    )
    assert await write(world, put(paused, revision=row.revision), operation=OPERATION) == (True,)
    row = await keep(world, paused)
    assert await write(
        world, put(record(paused=paused.paused), revision=row.revision), operation=OPERATION
    ) == (True,)
    assert await write(world, put(declared), operation=OPERATION) == (False,)
    made, changed = [one.entry for one in (await world.pending("audit")).entries]
    assert (made.kind, made.subject, made.tenant) == ("schedules.edit", "schedule nightly", "acme")
    about = msgspec.json.decode(made.body)
    assert (about["actor"], about["note"], about["after"]["declared"]["task"]) == (
        "ann",
        "as agreed",
        "report",
    )
    assert "payload" not in about["after"]["declared"]
    about = msgspec.json.decode(changed.body)
    assert (about.get("before"), about["after"]) == (
        None,
        {"paused": {"who": "ann", "reason": "so", "set_at": world.now, "until": None}},
    )


async def test_the_audit_names_a_removal_and_slots_that_an_operator_has_taken(world: World) -> None:
    """S60: a run by hand changes nothing of the schedule, and is noted."""
    row = await keep(world, record())
    taken = put(record(), new(world.now, cause="run_now"), revision=row.revision)
    assert await write(world, taken, operation=OPERATION) == (True,)
    (row,) = await find(world, "nightly")
    gone = ScheduleChange(name="nightly", revision=row.revision)
    assert await write(world, gone, operation=OPERATION) == (True,)
    by_hand, removed = [one.entry for one in (await world.pending("audit")).entries]
    assert (by_hand.subject, removed.subject) == ("schedule nightly", "schedule nightly")
    about = msgspec.json.decode(removed.body)
    assert about["before"]["declared"]["queue"] == "bulk"


async def test_an_override_that_ends_is_said_with_its_end(world: World) -> None:
    """S60, S54: the entry says who, why and until when."""
    until = world.now + HOUR
    override = ScheduleOverride(spec=spec(note="x"), who="ann", set_at=world.now, until=until)
    assert await write(world, put(record(override=override)), operation=OPERATION) == (True,)
    ((entry),) = [one.entry for one in (await world.pending("audit")).entries]
    assert msgspec.json.decode(entry.body)["after"]["override_until"] == until
