"""The chain of the audit: what was changed, removed or moved in it is found (S60)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry
from fairlane.model.journal.sealing import (
    Checkpoint,
    Finding,
    Verifier,
    checkpoint_at,
    seal_all,
    seal_of,
)

KEY: Final = b"a key that the store does not know"
CHANGED: Final = "the entry was changed or moved, or was sealed with another key"
WRONG_END: Final = "the end of the chain is not the one that was noted"
WRONG_CHECKPOINT: Final = "the checkpoint was changed, or was made with another key"

replace = msgspec.structs.replace


def chain(length: int = 5, key: bytes | None = KEY) -> list[Entry]:
    """Seal some entries."""
    made = (NewEntry(kind="k", tenant="acme", subject=f"{n}", body=b'{"n":%d}' % n) for n in range(length))
    return list(seal_all([PendingEntry(n, 10 * n, one) for n, one in enumerate(made)], 0, b"", key))


def verify(
    entries: list[Entry],
    end: Entry,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 (frozen)
    key: bytes | None = KEY,
    page: int = 100,
) -> list[Finding]:
    """Verify a chain as it is stored, page by page, against the end that was noted."""
    verifier = Verifier(checkpoint, key)
    found = list(verifier.begin())
    for start in range(0, len(entries), page):
        found += verifier.read(entries[start : start + page])
    return found + list(verifier.end(end.number, end.seal))


@pytest.mark.parametrize("key", [None, KEY, b""])
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("page", [1, 2, 100])
def test_a_chain_that_nobody_touched_is_whole(key: bytes | None, length: int, page: int) -> None:
    """With a key or without, whatever pages it is read in."""
    entries = chain(length, key)
    assert [one.number for one in entries] == list(range(1, length + 1))
    assert verify(entries, entries[-1], key=key, page=page) == []


def test_an_empty_chain_is_whole() -> None:
    """Nothing was sealed, and nothing is missing."""
    assert verify([], Entry(0, 0, NewEntry(kind=""))) == []


Damage: TypeAlias = Callable[[list[Entry]], list[Entry]]


def change(**values: object) -> Damage:
    """Change the third entry."""
    return lambda entries: [*entries[:2], replace(entries[2], **values), *entries[3:]]


def change_content(**values: object) -> Damage:
    """Change what the third entry says."""
    return lambda entries: change(entry=replace(entries[2].entry, **values))(entries)


def swap(entries: list[Entry]) -> list[Entry]:
    """Exchange the contents and seals of two entries, each keeping its number."""
    second, third = entries[1], entries[2]
    return [
        entries[0],
        replace(third, number=second.number),
        replace(second, number=third.number),
        *entries[3:],
    ]


DAMAGES: Final[dict[str, tuple[Damage, list[Finding]]]] = {
    "another instant": (change(at=21), [Finding(3, CHANGED)]),
    "another kind": (change_content(kind="x"), [Finding(3, CHANGED)]),
    "another tenant": (change_content(tenant="globex"), [Finding(3, CHANGED)]),
    "no tenant": (change_content(tenant=None), [Finding(3, CHANGED)]),
    "another subject": (change_content(subject="x"), [Finding(3, CHANGED)]),
    "another count": (change_content(count=2), [Finding(3, CHANGED)]),
    "another body": (change_content(body=b'{"n":3}'), [Finding(3, CHANGED)]),
    "another seal": (change(seal=b"x" * 32), [Finding(3, CHANGED), Finding(4, CHANGED)]),
    "no seal": (change(seal=b""), [Finding(3, CHANGED), Finding(4, CHANGED)]),
    "the first is missing": (lambda e: e[1:], [Finding(1, "entries 1 to 1 are missing")]),
    "some are missing": (lambda e: e[:1] + e[3:], [Finding(2, "entries 2 to 3 are missing")]),
    "the last are missing": (lambda e: e[:3], [Finding(4, "entries 4 to 5 are missing")]),
    "all are missing": (lambda _: [], [Finding(1, "entries 1 to 5 are missing")]),
    "two were exchanged": (swap, [Finding(2, CHANGED), Finding(3, CHANGED), Finding(4, CHANGED)]),
    "one too many": (
        lambda e: [*e, Entry(6, 60, e[4].entry, b"made up")],
        [Finding(6, CHANGED), Finding(5, WRONG_END)],
    ),
    "the last was changed with its seal": (
        lambda e: [*e[:4], replace(e[4], seal=b"x" * 32)],
        [Finding(5, CHANGED), Finding(5, WRONG_END)],
    ),
}
"""What somebody did to a chain of five, and what is found: once where one entry was touched."""


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("page", [1, 100])
def test_what_was_done_to_a_chain_is_found_where_it_was_done(name: str, page: int) -> None:
    """One that was added at the end, too."""
    damage, findings = DAMAGES[name]
    entries = chain()
    assert verify(damage(entries), entries[-1], page=page) == findings


def test_who_has_no_key_cannot_seal_a_change_again() -> None:
    """Also if he seals everything after it again, and notes another end."""
    entries = chain()
    forged = replace(entries[2], entry=replace(entries[2].entry, body=b'{"n":"forged"}'))
    pending = [PendingEntry(0, one.at, one.entry) for one in (forged, *entries[3:])]
    again = [*entries[:2], *seal_all(pending, 2, entries[1].seal, b"guessed")]
    assert verify(again, again[-1]) == [Finding(3, CHANGED), Finding(4, CHANGED), Finding(5, CHANGED)]
    without = [*entries[:2], *seal_all(pending, 2, entries[1].seal, None)]
    assert verify(without, without[-1])[0] == Finding(3, CHANGED)


def test_without_a_key_only_accidents_are_found() -> None:
    """Whoever can write can seal again: it is a checksum."""
    entries = chain(key=None)
    assert verify(change_content(body=b"{}")(entries), entries[-1], key=None) == [Finding(3, CHANGED)]
    pending = [PendingEntry(0, one.at, replace(one.entry, body=b"{}")) for one in entries]
    forged = list(seal_all(pending, 0, b"", None))
    assert verify(forged, forged[-1], key=None) == []


@pytest.mark.parametrize(("sealed_with", "verified_with"), [(KEY, None), (None, KEY), (KEY, b"other")])
def test_another_key_finds_every_entry(sealed_with: bytes | None, verified_with: bytes | None) -> None:
    """And says that this may be why."""
    entries = chain(key=sealed_with)
    assert verify(entries, entries[-1], key=verified_with) == [Finding(n, CHANGED) for n in range(1, 6)]


def test_a_seal_depends_on_the_one_before() -> None:
    """So that the same entry at another place has another seal, and the chain goes on over batches."""
    entries = chain()
    one = entries[1]
    assert seal_of(2, one.at, one.entry, entries[0].seal, KEY) == one.seal
    assert seal_of(3, one.at, one.entry, entries[0].seal, KEY) != one.seal
    assert seal_of(2, one.at, one.entry, b"", KEY) != one.seal
    pending = [PendingEntry(0, one.at, one.entry) for one in entries]
    first = seal_all(pending[:2], 0, b"", KEY)
    assert [*first, *seal_all(pending[2:], 2, first[-1].seal, KEY)] == entries
    assert seal_all([], 5, b"seal", KEY) == ()


# ── checkpoints ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("key", [None, KEY])
def test_a_chain_whose_beginning_was_removed_in_time_is_whole(number: int, key: bytes | None) -> None:
    """The checkpoint stands for what is gone, up to all of it."""
    entries = chain(key=key)
    checkpoint = checkpoint_at(number, entries[number - 1].seal, key)
    assert verify(entries[number:], entries[-1], checkpoint, key) == []


def test_entries_that_were_removed_too_early_are_missing() -> None:
    """Behind a checkpoint as at the beginning."""
    entries = chain()
    checkpoint = checkpoint_at(2, entries[1].seal, KEY)
    assert verify(entries[3:], entries[-1], checkpoint) == [Finding(3, "entries 3 to 3 are missing")]


@pytest.mark.parametrize(
    "values", [{"number": 3}, {"seal": b"x"}, {"sealed": b"x"}, {"sealed": b""}], ids=str
)
def test_a_changed_checkpoint_is_found(values: dict[str, object]) -> None:
    """Whatever of it was changed, and one that was made with another key."""
    entries = chain()
    checkpoint = replace(checkpoint_at(2, entries[1].seal, KEY), **values)
    found = verify(entries[checkpoint.number :], entries[-1], checkpoint)
    assert found[0] == Finding(checkpoint.number, WRONG_CHECKPOINT)
    other = checkpoint_at(2, entries[1].seal, b"guessed")
    assert verify(entries[2:], entries[-1], other) == [Finding(2, WRONG_CHECKPOINT)]


def test_a_checkpoint_is_no_seal_of_an_entry() -> None:
    """Neither can stand in the other's place."""
    entries = chain()
    checkpoint = checkpoint_at(2, entries[1].seal, KEY)
    assert checkpoint.sealed not in {one.seal for one in entries}
    forged = Checkpoint(2, entries[1].seal, entries[1].seal)
    assert verify(entries[2:], entries[-1], forged)[0] == Finding(2, WRONG_CHECKPOINT)


def test_a_checkpoint_that_was_taken_away_leaves_a_gap() -> None:
    """A chain cannot be made to begin later."""
    entries = chain()
    assert verify(entries[2:], entries[-1]) == [Finding(1, "entries 1 to 2 are missing")]


@given(
    length=st.integers(1, 12),
    place=st.integers(0, 11),
    damage=st.sampled_from(("drop", "body", "seal", "twice", "swap")),
    page=st.integers(1, 5),
)
def test_any_one_damage_anywhere_is_found(length: int, place: int, damage: str, page: int) -> None:
    """And without it nothing is."""
    entries = chain(length)
    assert verify(entries, entries[-1], page=page) == []
    at = place % length
    one = entries[at]
    after = {
        "drop": entries[:at] + entries[at + 1 :],
        "body": [*entries[:at], replace(one, entry=replace(one.entry, body=b"[]")), *entries[at + 1 :]],
        "seal": [*entries[:at], replace(one, seal=one.seal[::-1]), *entries[at + 1 :]],
        "twice": [*entries[: at + 1], one, *entries[at + 1 :]],
        "swap": [*entries[:at][::-1], *entries[at:][::-1]],
    }[damage]
    assert bool(verify(after, entries[-1], page=page)) is (after != entries)
