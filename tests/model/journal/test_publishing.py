"""Which events get a number, which are lost, and which are removed (S76)."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import SECOND
from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry
from fairlane.model.journal.memory import EventMemory, Subscriber
from fairlane.model.journal.publishing import KEPT_FOR_SUBSCRIBERS, Published, publish, removable_up_to

MOST = 100
KEPT = KEPT_FOR_SUBSCRIBERS * MOST


def event(subject: str, count: int = 1) -> NewEntry:
    """Return an event about something."""
    return NewEntry(kind="dead_letter", tenant="acme", subject=subject, count=count)


def pending(*entries: NewEntry, at: int = 0) -> list[PendingEntry]:
    """Return these as entries that wait for a number."""
    return [PendingEntry(place, at, entry) for place, entry in enumerate(entries, 1)]


def done(*entries: NewEntry, memory: EventMemory, last: int, at: int = 0) -> Published:
    """Publish these."""
    return publish(pending(*entries, at=at), (), memory, last=last, now=at, most=MOST)


def waiting(cursor: int) -> EventMemory:
    """Return the memory of one subscriber that has got so many."""
    return EventMemory(subscribers={"mail": Subscriber(cursor, 0)})


def test_events_are_numbered_without_gaps_after_the_last_one() -> None:
    """What the duty made itself comes last."""
    made = publish(pending(event("a"), event("b")), [event("c")], EventMemory(), last=7, now=0, most=MOST)
    assert [(one.number, one.entry.subject) for one in made.entries] == [(8, "a"), (9, "b"), (10, "c")]


def test_a_storm_is_its_first_event_and_a_count() -> None:
    """The rest of ten seconds comes when they are over, from whatever leader there is then."""
    first = done(event("a"), event("a", 4), event("a", 5), memory=EventMemory(), last=0)
    assert [one.entry.count for one in first.entries] == [1]
    rest = done(memory=first.memory, last=1, at=10 * SECOND)
    assert [(one.number, one.entry.count) for one in rest.entries] == [(2, 9)]
    assert rest.memory.folds == {}


def test_without_a_subscriber_that_lags_nothing_is_lost() -> None:
    """However many come at once: what is removed is old."""
    many = [event(str(number)) for number in range(KEPT)]
    assert len(done(*many, memory=EventMemory(), last=10**6).entries) == KEPT
    assert len(done(*many, memory=waiting(10**6), last=10**6).entries) == KEPT


def test_beyond_what_is_kept_for_a_subscriber_new_events_are_counted() -> None:
    """With the counts that they have themselves."""
    full = done(event("a"), event("b", 3), event("c"), memory=waiting(0), last=KEPT - 1)
    assert [one.entry.subject for one in full.entries] == ["a"]
    assert full.memory.lost == 4
    more = done(event("d", 2), memory=full.memory, last=KEPT)
    assert (more.entries, more.memory.lost) == ((), 6)


def test_as_soon_as_there_is_room_one_event_says_how_many_were_lost() -> None:
    """Before those that come next."""
    memory = msgspec.structs.replace(waiting(2), lost=6)
    told = done(event("e"), memory=memory, last=KEPT)
    assert [(one.number, one.entry.kind, one.entry.count) for one in told.entries] == [
        (KEPT + 1, "events_lost", 6),
        (KEPT + 2, "dead_letter", 1),
    ]
    assert told.memory.lost == 0


def test_a_loss_is_told_before_anything_else_is_kept() -> None:
    """If there is room for one only, the next is lost again."""
    memory = msgspec.structs.replace(waiting(1), lost=6)
    told = done(event("e"), memory=memory, last=KEPT)
    assert [one.entry.kind for one in told.entries] == ["events_lost"]
    assert told.memory.lost == 1


# ── what is removed ──────────────────────────────────────────────────────────


def stored(*instants: int, first: int = 1) -> list[Entry]:
    """Return stored events of these instants."""
    return [Entry(number, at, event("a")) for number, at in enumerate(instants, first)]


def test_old_events_are_removed_up_to_the_first_that_is_not() -> None:
    """An instant that is exactly as old as allowed has passed."""
    oldest = stored(5, 9, 10, 11, 3)
    assert removable_up_to(oldest, EventMemory(), last=50, most=MOST, before=10) == 3


def test_all_but_the_newest_are_removed_however_young() -> None:
    """Exactly `most` stay."""
    oldest = stored(50, 51)
    assert removable_up_to(oldest, EventMemory(), last=MOST, most=MOST, before=0) == 0
    assert removable_up_to(oldest, EventMemory(), last=MOST + 2, most=MOST, before=0) == 2


def test_nothing_is_removed_that_a_subscriber_has_not_got() -> None:
    """The slowest counts."""
    oldest = stored(1, 2, 3)
    memory = EventMemory(subscribers={"mail": Subscriber(2, 0), "page": Subscriber(9, 0)})
    assert removable_up_to(oldest, memory, last=10**6, most=MOST, before=10) == 2
    assert removable_up_to(oldest, waiting(0), last=10**6, most=MOST, before=10) == 0


def test_of_an_empty_journal_nothing_is_removed() -> None:
    """Also if it was full once."""
    assert removable_up_to([], EventMemory(), last=10**6, most=MOST, before=10) == 0
