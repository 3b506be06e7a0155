"""Job ids sort by time, never go back inside a process, and can be read in two forms and no third."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.identifiers import IdMaker, made_at, parse_id, slot_id, to_base32
from fairlane.model.instants import DAY, SECOND

NOW = 1_772_366_400 * SECOND
LAST_COUNT = 2**42 - 1

instants = st.integers(0, 2**48 * 1000 - 1)
ids = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))


def maker(seed: int = 1) -> IdMaker:
    """Make ids with repeatable random bits."""
    return IdMaker(random.Random(seed).getrandbits)


def ones(bits: int) -> int:
    """Draw the largest number."""
    return (1 << bits) - 1


def zeros(_: int) -> int:
    """Draw the smallest number."""
    return 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10_000_000), min_size=2, max_size=60), st.integers(0, 2**32))
def test_ids_grow_whatever_the_clock_does(steps: list[int], seed: int) -> None:
    """Standing still, going back, jumping ahead: each id is greater than all before, in both forms."""
    made = maker(seed)
    found = [made.next(NOW + step) for step in steps]
    assert found == sorted(set(found))
    assert [to_base32(one) for one in found] == sorted(to_base32(one) for one in found)
    assert [one.bytes for one in found] == sorted(one.bytes for one in found)


@settings(max_examples=100, deadline=None)
@given(instants)
def test_an_id_says_the_millisecond_in_which_it_was_made(now: int) -> None:
    """And is a version-7 UUID of the standard variant."""
    made = maker().next(now)
    assert made_at(made) == now // 1000 * 1000
    assert (made.version, made.variant) == (7, RFC_4122)


@pytest.mark.parametrize("draw", [ones, zeros])
def test_version_and_variant_survive_any_random_bits(draw: Callable[[int], int]) -> None:
    """The layout masks what it places."""
    made = IdMaker(draw)
    for _ in range(3):
        one = made.next(NOW)
        assert (one.version, one.variant) == (7, RFC_4122)
        assert made_at(one) == NOW


def test_ids_of_a_clock_that_went_back_keep_the_later_time() -> None:
    """Order within the process is worth more than the truth of a clock that lied."""
    made = maker()
    made.next(NOW)
    assert made_at(made.next(NOW - DAY)) == NOW
    assert made_at(made.next(NOW + 1_000)) == NOW + 1_000


def test_a_millisecond_that_is_counted_full_borrows_the_next() -> None:
    """The order holds across the overflow, and afterwards too."""
    made = maker()
    first = made.next(NOW)
    made._counter = LAST_COUNT - 1
    last, over, after = made.next(NOW), made.next(NOW), made.next(NOW)
    assert first < last < over < after
    assert (made_at(last), made_at(over), made_at(after)) == (NOW, NOW + 1_000, NOW + 1_000)
    assert made.next(NOW + 1_000) > after
    assert made_at(made.next(NOW + 2_000)) == NOW + 2_000


def test_the_order_holds_when_the_count_reaches_its_last_bit() -> None:
    """Every bit of the counter has its place in the id."""
    made = maker()
    made.next(NOW)
    found = []
    for bit in range(10, 42):
        made._counter = (1 << bit) - 2
        found += [made.next(NOW), made.next(NOW)]
    assert found == sorted(set(found))


def test_every_random_bit_has_a_place() -> None:
    """Drawing all ones and all zeros differs in every bit but time, version, variant and a spare one."""
    ones_, zeros_ = IdMaker(ones).next(NOW), IdMaker(zeros).next(NOW)
    assert (ones_.int ^ zeros_.int).bit_count() == 41 + 32


def test_ids_made_together_grow_and_are_those_of_their_millisecond() -> None:
    """Also after one that was made alone, and before the next; none asked for is none given."""
    made = maker()
    found = [made.next(NOW), *made.many(NOW, 500), *made.many(NOW, 0), made.next(NOW)]
    assert found == sorted(set(found))
    assert len(found) == 502
    assert {made_at(one) for one in found} == {NOW}
    assert len({one.int & 2**32 - 1 for one in found}) > 490


def test_a_fresh_millisecond_has_room_to_count() -> None:
    """Even the largest seed leaves half of the counter free."""
    made = IdMaker(ones)
    made.next(NOW)
    assert made._counter < 2**41


def test_two_makers_with_their_own_random_bits_do_not_meet() -> None:
    """Ids of many processes in one millisecond."""
    makers = [maker(seed) for seed in range(50)]
    assert len({made.next(NOW) for made in makers for _ in range(50)}) == 2_500


# ── slots ────────────────────────────────────────────────────────────────────


def test_the_id_of_a_slot_is_pinned() -> None:
    """Were it to change, a slot would fire again after an upgrade (S57)."""
    assert slot_id("acme", "nightly", NOW) == UUID("019ca945-0a00-7ee0-9abf-a1dec2567a54")
    assert slot_id("globex", "nightly", NOW) == UUID("019ca945-0a00-72c9-9ea0-0e4125558d01")


def test_the_id_of_a_slot_has_the_layout_of_every_id() -> None:
    """It sorts among others by the slot's time."""
    one = slot_id("acme", "nightly", NOW)
    assert (one.version, one.variant, made_at(one)) == (7, RFC_4122, NOW)
    assert slot_id("acme", "nightly", NOW - SECOND) < one < slot_id("acme", "nightly", NOW + SECOND)


def test_slots_that_differ_in_anything_have_ids_of_their_own() -> None:
    """Also where names run together, and where only the microsecond differs."""
    slots = [
        ("acme", "nightly", NOW),
        ("acme", "nightly", NOW + 1),
        ("acme", "nightl", NOW),
        ("acm", "enightly", NOW),
        ("acmen", "ightly", NOW),
        ("nightly", "acme", NOW),
        ("Acme", "nightly", NOW),
        ("acme", "nightly1", NOW // 10),
        ("4:acme", "nightly", NOW),
        ("a", "1:b", NOW),
        ("a1:", "b", NOW),
    ]
    assert len({slot_id(*slot) for slot in slots}) == len(slots)


@settings(max_examples=100, deadline=None)
@given(st.text("ab:1", max_size=4), st.text("ab:1", max_size=4), st.integers(0, 20), st.data())
def test_only_the_same_slot_has_the_same_id(
    tenant: str, schedule: str, slot: int, data: st.DataObject
) -> None:
    """Three parts in, one id out, the same one every time."""
    other = data.draw(st.tuples(st.text("ab:1", max_size=4), st.text("ab:1", max_size=4), st.integers(0, 20)))
    is_same = slot_id(tenant, schedule, slot) == slot_id(*other)
    assert is_same == ((tenant, schedule, slot) == other)


# ── two forms ────────────────────────────────────────────────────────────────


@settings(max_examples=100, deadline=None)
@given(ids)
def test_an_id_survives_both_forms_in_any_case(one: UUID) -> None:
    """26 characters of base 32, the dashed form, the bare one, and the id itself."""
    short = to_base32(one)
    assert len(short) == 26
    for form in (short, short.lower(), str(one), str(one).upper(), one.hex, one):
        assert parse_id(form) == one


@settings(max_examples=100, deadline=None)
@given(ids, ids)
def test_the_short_form_sorts_like_the_id(one: UUID, other: UUID) -> None:
    """So that a list of short ids is in order of time."""
    assert (one < other) == (to_base32(one) < to_base32(other))


def test_the_short_form_has_no_letters_that_are_misread() -> None:
    """No I, L, O or U."""
    letters = {letter for number in range(32) for letter in to_base32(UUID(int=number))}
    assert letters == set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "nonsense",
        "0" * 25,
        "0" * 27,
        "0" * 31,
        "0" * 33,
        "8" + "0" * 25,
        "Z" * 26,
        "I" + "0" * 25,
        "L" + "0" * 25,
        "O" + "0" * 25,
        "U" + "0" * 25,
        "0" * 25 + "ß",
        "0" * 25 + "ſ",
        " " + "0" * 25,
        "0" * 25 + "\n",
        "0" * 25 + "-",
        "٠" * 26,
        "٠" * 32,
        "0x" + "0" * 30,
        "+" + "0" * 31,
        " " + "0" * 31,
        "0_" * 15 + "00",
        "g" * 32,
        "{00000000-0000-0000-0000-000000000021}",
        "urn:uuid:00000000-0000-0000-0000-000000000021",
        "0000000-00000-0000-0000-000000000021",
        "00000000-0000-0000-0000-00000000002",
        " 00000000-0000-0000-0000-000000000021",
        "00000000-0000-0000-0000-000000000021\n",
        "x" * 100_000,
    ],
)
def test_any_other_text_is_refused_and_shown_in_a_bounded_way(text: str) -> None:
    """Nothing is trimmed or repaired; the message says which forms there are."""
    with pytest.raises(ValueError, match="is no job id; give a UUID or its 26-character form") as caught:
        parse_id(text)
    assert len(str(caught.value)) < 300
    assert caught.value.__cause__ is None
