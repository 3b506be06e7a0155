"""`app.events`: reading and following what happened."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from fairlane import Events, EventView, Fairlane, TenantMismatch
from fairlane.app.journals import events as module
from fairlane.model.instants import to_datetime
from fairlane.model.journal.entries import NewEntry
from tests.app.journals.conftest import Append, Lead
from tests.app.world import World


async def happen(append: Append, tell: Lead, *subjects: str, **values: Any) -> None:
    """Let something happen to each of these, and be numbered."""
    entries = (NewEntry(**{"kind": "worker_lost", "subject": one, **values}) for one in subjects)
    await append(*entries, journal="events")
    await tell()


def subjects(found: Any) -> list[str]:
    """Return what events are about."""
    return [one.subject for one in found]


async def test_an_event_says_what_happened_how_bad_it_is_and_for_whom(
    world: World, app: Fairlane, append: Append, tell: Lead
) -> None:
    """It is there once it has a number."""
    at = to_datetime(world.clock.now())
    entry = NewEntry(
        kind="job_limit_warning", tenant="acme", subject="bulk", count=3, body=b'{"queue":"bulk"}'
    )
    await append(entry, journal="events")
    assert subjects(await app.events.afind()) == []
    await tell()
    (event,) = await app.events.afind()
    assert isinstance(event, EventView)
    assert (event.number, event.at, event.kind, event.subject) == (1, at, "job_limit_warning", "bulk")
    assert (event.severity, event.addressee, event.tenant, event.count) == ("warning", "creator", "acme", 3)
    assert event.body == {"queue": "bulk"}


async def test_the_newest_comes_first_page_by_page(app: Fairlane, append: Append, tell: Lead) -> None:
    """And each once; `each` begins with the oldest, or after a number."""
    await happen(append, tell, *(f"w{n}" for n in range(5)))
    found: list[str] = []
    cursor = None
    while True:
        page = await app.events.afind(limit=2, cursor=cursor)
        found += subjects(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert found == ["w4", "w3", "w2", "w1", "w0"]
    assert [one.subject async for one in app.events.aeach()] == found[::-1]
    assert [one.subject async for one in app.events.aeach(after=3)] == ["w3", "w4"]


async def test_many_pages_are_read_as_the_iteration_reaches_them(
    app: Fairlane, append: Append, tell: Lead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call reads a bounded number."""
    monkeypatch.setattr(module, "MAX_ENTRIES", 2)
    await happen(append, tell, *(f"w{n}" for n in range(5)))
    assert len([one async for one in app.events.aeach()]) == 5


async def test_every_filter_holds(world: World, app: Fairlane, append: Append, tell: Lead) -> None:
    """Also when iterating."""
    await happen(append, tell, "a")
    await happen(append, tell, "b", kind="job_stuck", tenant="acme")
    between = to_datetime(world.clock.now())
    await happen(append, tell, "c", kind="dead_letter", tenant="globex")

    async def found(**filters: Any) -> list[str]:
        listed = subjects(await app.events.afind(**filters))
        assert [one.subject async for one in app.events.aeach(**filters)] == listed[::-1]
        return listed

    assert await found(kind="job_stuck") == ["b"]
    assert await found(kind={"job_stuck", "dead_letter"}) == ["c", "b"]
    assert await found(subject="a") == ["a"]
    assert await found(tenant="globex") == ["c"]
    assert await found(since=between) == ["c"]
    assert await found(until=between) == ["b", "a"]


async def test_events_of_a_queue_or_task_are_found_by_their_facts_or_subject(
    app: Fairlane, append: Append, tell: Lead
) -> None:
    """Both filters hold together; pages are full although others lie between."""
    for number in range(3):
        await happen(append, tell, f"a{number}", body=b'{"queue":"mail","task":"send"}')
        await happen(append, tell, f"b{number}", body=b'{"queue":"bulk","task":"send"}')
    await happen(append, tell, "queue mail", "task send")
    assert subjects(await app.events.afind(queue="mail", limit=4)) == ["queue mail", "a2", "a1", "a0"]
    assert subjects(await app.events.afind(queue="bulk", task="send")) == ["b2", "b1", "b0"]
    assert [one.subject async for one in app.events.aeach(task="send", queue="mail")] == ["a0", "a1", "a2"]
    assert subjects(await app.events.afind(queue="bulk", task="other")) == []


async def test_following_begins_with_the_next_event_and_waits_for_more(
    world: World, app: Fairlane, append: Append, tell: Lead
) -> None:
    """Or goes on after a number."""
    clock = world.drive(app)
    await happen(append, tell, "old")

    async def later(subject: str) -> None:
        await happen(append, tell, subject)

    clock.meanwhile = [lambda: later("first"), lambda: later("second")]
    found: list[str] = []
    async for one in app.events.atail():
        found.append(one.subject)
        if len(found) == 2:
            break
    assert found == ["first", "second"]
    assert clock.waits == [1_000_000, 1_000_000]
    async for one in app.events.atail(after=1):
        assert one.subject == "first"
        break


async def test_inside_a_tenant_only_its_events_are_visible(app: Fairlane, append: Append, tell: Lead) -> None:
    """S76: those of all tenants are for operators."""
    await happen(append, tell, "a", tenant="acme")
    await happen(append, tell, "b", tenant="globex")
    await happen(append, tell, "c")
    with app.tenant("acme"):
        assert subjects(await app.events.afind()) == ["a"]
        assert [one.subject async for one in app.events.aeach()] == ["a"]
        with pytest.raises(TenantMismatch):
            await app.events.afind(tenant="globex")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda events: events.find(limit=0), "limit is 0"),
        (lambda events: events.find(cursor="x"), "'x' is not a cursor"),
        (lambda events: events.find(kind="dead_leter"), "did you mean 'dead_letter'.*use job_limit_warning"),
        (lambda events: events.each(after=-1), "after is -1; use the number of an entry"),
        (lambda events: events.each(after=True), "after is True"),
        (lambda events: events.tail(after="x"), "after is x"),
        (lambda events: events.tail(since=5), "since: is of type int"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(world: World, app: Fairlane, call: Any, words: str) -> None:
    """At the call, not at the first event."""
    with pytest.raises(ValueError, match=words):
        call(app.events)
    assert world.asked == []


async def _prepared(append: Append, tell: Lead) -> None:
    await happen(append, tell, "a", "b")


def test_plain_callers_read_and_follow_the_same(
    world: World, app: Fairlane, append: Append, tell: Lead
) -> None:
    """Each method has a twin."""
    clock = world.drive(app)
    app.client.portal.run(_prepared(append, tell))
    assert subjects(app.events.find(since=to_datetime(world.clock.now()) - timedelta(1))) == ["b", "a"]
    assert subjects(app.events.each()) == ["a", "b"]
    assert subjects(islice(app.events.tail(after=0), 2)) == ["a", "b"]
    clock.meanwhile = [lambda: happen(append, tell, "c")]
    assert subjects(islice(app.events.tail(), 1)) == ["c"]
    public = {name for name in dir(Events) if not name.startswith("_")}
    verbs = {name for name in public if f"a{name}" in public}
    assert public == verbs | {f"a{name}" for name in verbs}
