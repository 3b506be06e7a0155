"""Cursors are opaque, survive every place, and only our own are read (S51)."""

from __future__ import annotations

import base64
import string
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.scope import Scope
from fairlane.store.contract.request import (
    MAX_PAGE_SIZE,
    MAX_ROWS_READ,
    JobPosition,
    Request,
    from_cursor,
    to_cursor,
)

ID = '"00000000-0000-0000-0000-000000000007"'

places = st.builds(
    JobPosition, enqueued_at=st.integers(0, 2**53), id=st.integers(0, 2**128 - 1).map(lambda i: UUID(int=i))
)


def written(text: str) -> str:
    """Encode any text as a cursor is encoded."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@settings(max_examples=100, deadline=None)
@given(places)
def test_every_place_survives_the_way_through_a_cursor(place: JobPosition) -> None:
    """And the cursor fits into an address as it is."""
    cursor = to_cursor(place)
    assert from_cursor(cursor) == place
    assert set(cursor) <= set(string.ascii_letters + string.digits + "-_")


@settings(max_examples=100, deadline=None)
@given(places, places)
def test_different_places_have_different_cursors(one: JobPosition, other: JobPosition) -> None:
    """One text, one place."""
    assert (to_cursor(one) == to_cursor(other)) == (one == other)


OURS = to_cursor(JobPosition(5, UUID(int=7)))


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "nonsense",
        "=",
        "====",
        OURS + "=",
        OURS + "==",
        OURS[:-1],
        OURS + "A",
        " " + OURS,
        OURS + "\n",
        OURS[:10] + "\n" + OURS[10:],
        OURS[:10] + "*" + OURS[10:],
        "é" + OURS,
        "\ud800",
        written(""),
        written("5"),
        written("{}"),
        written("[]"),
        written("[5]"),
        written(f"[{ID},5]"),
        written(f"[5,{ID},1]"),
        written(f" [5,{ID}]"),
        written(f"[5, {ID}]"),
        written(f"[5.0,{ID}]"),
        written(f"[true,{ID}]"),
        written(f"[null,{ID}]"),
        written(f"[-1,{ID}]"),
        written(f"[{2**53 + 1},{ID}]"),
        written(f"[{2**63},{ID}]"),
        written(f"[{10**40},{ID}]"),
        written('[5,"00000000000000000000000000000007"]'),
        written('[5,"not an id"]'),
        written(f"[5,{ID},{'[' * 100_000}"),
        base64.urlsafe_b64encode(b"\xff\xfe\xfd").decode(),
        "A" * 100_000,
    ],
)
def test_a_cursor_that_we_did_not_write_is_refused_and_shown_in_a_bounded_way(cursor: str) -> None:
    """Nothing from outside reaches a store's query except a place we might have given out."""
    with pytest.raises(
        ValueError, match="is not a cursor; use the one that came with the page before"
    ) as caught:
        from_cursor(cursor)
    assert len(str(caught.value)) < 500


@settings(max_examples=100, deadline=None)
@given(st.text(string.ascii_letters + string.digits + "-_", max_size=80))
def test_a_text_is_a_cursor_exactly_if_it_is_what_we_would_write(text: str) -> None:
    """No second spelling of a place."""
    try:
        place = from_cursor(text)
    except ValueError:
        return
    assert to_cursor(place) == text


def test_a_request_must_say_its_scope() -> None:
    """There is no default; forgetting it cannot widen a call."""
    assert Request(scope=Scope("acme")).scope == Scope("acme")
    with pytest.raises(TypeError):
        Request()  # type: ignore[call-arg]


def test_reading_is_bounded() -> None:
    """Ten thousand rows a call, a thousand items a page."""
    assert (MAX_ROWS_READ, MAX_PAGE_SIZE) == (10_000, 1_000)
