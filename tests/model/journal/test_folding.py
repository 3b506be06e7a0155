"""A storm of events becomes its first one and a count, and nothing is lost (S76)."""

from __future__ import annotations

from collections import Counter
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.instants import SECOND
from fairlane.model.journal.entries import NewEntry, PendingEntry
from fairlane.model.journal.folding import FOLD_FOR, Fold, Folded, FoldKey, fold

A, B = NewEntry(kind="a", subject="s"), NewEntry(kind="b", subject="s")
KEY: FoldKey = ("a", None, "s")


def at(seconds: float, entry: NewEntry = A, times: int = 1, body: bytes = b"{}") -> PendingEntry:
    """Return an entry that happened then."""
    changed = msgspec.structs.replace(entry, count=times, body=body)
    return PendingEntry(1, round(seconds * SECOND), changed)


def told(found: Folded) -> list[tuple[float, str, int]]:
    """Return when each published entry is said to have happened, its kind and count."""
    return [(instant / SECOND, entry.kind, entry.count) for instant, entry in found.published]


def test_the_example_of_the_module() -> None:
    """The first at once, the rest of ten seconds as one, then a first one again."""
    first = fold([at(0), at(0.4)], {}, round(0.5 * SECOND))
    assert told(first) == [(0, "a", 1)]
    second = fold([at(3)], first.folds, 3 * SECOND)
    assert told(second) == []
    third = fold([], second.folds, FOLD_FOR - 1)
    assert (told(third), third.folds) == ([], second.folds)
    fourth = fold([], third.folds, FOLD_FOR)
    assert (told(fourth), fourth.folds) == ([(3, "a", 2)], {})
    fifth = fold([at(12)], fourth.folds, 12 * SECOND)
    assert told(fifth) == [(12, "a", 1)]


def test_the_closing_entry_is_the_last_one() -> None:
    """With its body and instant, and the count of all but the first."""
    found = fold([at(0, body=b"0"), at(1, times=5, body=b"1"), at(2, times=7, body=b"2")], {}, FOLD_FOR)
    (_, first), (instant, last) = found.published
    assert (first.count, first.body) == (1, b"0")
    assert (instant, last.count, last.body) == (2 * SECOND, 12, b"2")
    assert found.folds == {}


def test_one_that_comes_alone_is_told_once() -> None:
    """Its fold ends without a word."""
    found = fold([at(0, times=4)], {}, FOLD_FOR)
    assert (told(found), found.folds) == ([(0, "a", 4)], {})


@pytest.mark.parametrize(
    "other",
    [B, NewEntry(kind="a", subject="t"), NewEntry(kind="a", subject="s", tenant="acme")],
    ids=["kind", "subject", "tenant"],
)
def test_other_kinds_tenants_and_subjects_are_folded_apart(other: NewEntry) -> None:
    """Each has a first one of its own."""
    found = fold([at(0), at(1, other), at(2), at(3, other)], {}, 4 * SECOND)
    assert len(told(found)) == 2
    assert {fold.count for fold in found.folds.values()} == {1}


def test_decisions_that_differ_are_folded_apart() -> None:
    """One that resolved five letters and ignored three says both."""
    decided = NewEntry(kind="dead_letter_reviewed", subject="f1")
    resolved, ignored = b'{"review":"resolved"}', b'{"review":"ignored"}'
    words = [resolved, resolved, ignored, resolved, ignored, resolved, resolved, ignored]
    pending = [at(second, decided, body=body) for second, body in enumerate(words)]
    found = fold(pending, {}, 20 * SECOND)
    assert [(entry.body, entry.count) for _, entry in found.published] == [
        (resolved, 1),
        (ignored, 1),
        (resolved, 4),
        (ignored, 2),
    ]


def test_an_entry_after_the_end_closes_the_fold_and_opens_another() -> None:
    """Also if no pass came in between; what is published comes in order of time."""
    found = fold([at(0), at(9), at(10), at(11)], {}, 12 * SECOND)
    assert told(found) == [(0, "a", 1), (9, "a", 1), (10, "a", 1)]
    assert found.folds == {KEY: Fold(20 * SECOND, 1, 11 * SECOND, A)}


def test_an_entry_that_was_committed_late_is_counted() -> None:
    """It happened before the fold began, and is part of the same storm."""
    found = fold([at(5), at(1)], {}, 6 * SECOND)
    assert told(found) == [(5, "a", 1)]
    assert found.folds[KEY].count == 1


def test_what_is_published_is_in_the_order_of_time() -> None:
    """Closing entries come between first ones, where they belong."""
    begun = fold([at(0, A), at(2, A)], {}, 3 * SECOND)
    found = fold([at(11, B), at(1, NewEntry(kind="c"))], begun.folds, 12 * SECOND)
    assert told(found) == [(1, "c", 1), (2, "a", 1), (11, "b", 1)]


def test_nothing_is_nothing() -> None:
    """No entries, no folds."""
    assert fold([], {}, 0) == Folded((), {})


def test_the_folds_that_were_given_are_left_alone() -> None:
    """The duty may have to do it again, if another one numbered first."""
    before = {KEY: Fold(FOLD_FOR, 2, 1, A)}
    fold([at(1), at(20)], before, 30 * SECOND)
    assert before == {KEY: Fold(FOLD_FOR, 2, 1, A)}


steps = st.lists(
    st.tuples(
        st.sampled_from((0, 100_000, SECOND, 4 * SECOND, 11 * SECOND)),
        st.sampled_from((A, B, NewEntry(kind="a", tenant="acme", subject="s"))),
        st.integers(1, 5),
        st.booleans(),
    ),
    max_size=40,
)


@given(steps=steps)
def test_every_count_is_published_exactly_once(
    steps: list[tuple[int, NewEntry, int, bool]],
) -> None:
    """However entries fall into passes; and a storm is told at most three times in ten seconds."""
    now, places = 0, count(1)
    sent: Counter[FoldKey] = Counter()
    got: Counter[FoldKey] = Counter()
    instants: dict[FoldKey, list[int]] = {}
    state = Folded((), {})
    waiting: list[PendingEntry] = []

    def publish(state: Folded) -> None:
        for instant, entry in state.published:
            key = (entry.kind, entry.tenant, entry.subject)
            got[key] += entry.count
            instants.setdefault(key, []).append(instant)

    for wait, entry, times, is_pass in steps:
        now += wait
        waiting.append(PendingEntry(next(places), now, msgspec.structs.replace(entry, count=times)))
        sent[entry.kind, entry.tenant, entry.subject] += times
        if is_pass:
            state = fold(waiting, state.folds, now)
            waiting = []
            publish(state)
    state = fold(waiting, state.folds, now)
    publish(state)
    publish(fold([], state.folds, now + FOLD_FOR))
    assert got == sent
    for told_at in instants.values():
        assert told_at == sorted(told_at)
        # Of four in a row two are first ones, which are ten seconds apart.
        assert all(fourth - first >= FOLD_FOR for first, fourth in zip(told_at, told_at[3:], strict=False))
