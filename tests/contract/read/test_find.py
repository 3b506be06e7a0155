"""Find jobs over all homes by every filter, alone and together (S51)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import Scalar
from fairlane.store.contract.upkeep import ForgetRequest
from tests.contract.world import SUCCEEDED, World, payload, ruined

PARENT: Final = UUID("01900000-0000-7000-8000-000000000001")
S: Final = 1_000_000

POPULATION: Final[dict[str, dict[str, Any]]] = {
    "a": {
        "queue": "mail",
        "task": "send",
        "correlation_id": "r1",
        "tags": ("red", "blue"),
        "created_by": "ann",
    },
    "b": {"queue": "mail", "task": "sort", "correlation_id": "r1", "parent_id": PARENT},
    "c": {"queue": "bulk", "task": "send", "correlation_id": "r2", "tags": ("blue",), "created_by": "ann"},
    "d": {
        "queue": "bulk",
        "task": "sort",
        "correlation_id": "R1",
        "tags": ("re",),
        "parent_id": PARENT,
        "created_by": "Ann",
    },
    "e": {
        "queue": "mail",
        "task": "send",
        "correlation_id": "r1",
        "tags": ("red",),
        "tenant": "globex",
        "created_by": "ann",
    },
}
"""Five jobs, one a second. When they are looked for, `a` has succeeded and `c` is dead."""

CASES: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "edcba"),
    ({"scope": Scope("acme")}, "dcba"),
    ({"scope": Scope("acm")}, ""),
    ({"states": {State.SUCCEEDED}}, "a"),
    ({"states": {State.DEAD}}, "c"),
    ({"states": {State.READY}}, "edb"),
    ({"states": {State.DEAD, State.SUCCEEDED}}, "ca"),
    ({"states": set(State)}, "edcba"),
    ({"states": {State.RUNNING, State.DELAYED, State.CANCELLED}}, ""),
    ({"queue": "mail"}, "eba"),
    ({"queue": "mai"}, ""),
    ({"task": "send"}, "eca"),
    ({"task": "Send"}, ""),
    ({"correlation_id": "r1"}, "eba"),
    ({"correlation_id": "R1"}, "d"),
    ({"correlation_id": "r"}, ""),
    ({"created_by": "ann"}, "eca"),
    ({"created_by": "Ann"}, "d"),
    ({"created_by": "an"}, ""),
    ({"tag": "red"}, "ea"),
    ({"tag": "blue"}, "ca"),
    ({"tag": "re"}, "d"),
    ({"parent_id": PARENT}, "db"),
    ({"parent_id": UUID(int=0)}, ""),
    ({"since": 0}, "edcba"),
    ({"since": S}, "edcb"),
    ({"since": S + 1}, "edc"),
    ({"since": 5 * S}, ""),
    ({"until": 0}, ""),
    ({"until": S}, "a"),
    ({"until": S + 1}, "ba"),
    ({"until": 5 * S}, "edcba"),
    ({"since": S, "until": 3 * S}, "cb"),
    ({"since": 2 * S, "until": 2 * S}, ""),
    ({"queue": "mail", "task": "send"}, "ea"),
    ({"queue": "mail", "states": {State.READY}}, "eb"),
    ({"queue": "mail", "states": {State.READY}, "scope": Scope("globex")}, "e"),
    ({"task": "send", "tag": "blue", "states": {State.DEAD}}, "c"),
    ({"correlation_id": "r1", "tag": "red", "until": S}, "a"),
    ({"correlation_id": "r1", "created_by": "ann"}, "ea"),
    ({"created_by": "ann", "scope": Scope("acme")}, "ca"),
    ({"created_by": "ann", "states": {State.DEAD}}, "c"),
    ({"parent_id": PARENT, "queue": "bulk", "since": 2 * S}, "d"),
    ({"correlation_id": "r1", "parent_id": PARENT, "tag": "red"}, ""),
]
"""Filters and the jobs they leave, newest first. Times count from the first enqueue."""


@pytest.mark.parametrize(("filters", "found"), CASES)
async def test_filters_leave_what_meets_them_all(world: World, filters: dict[str, Any], found: str) -> None:
    """S51: each filter compares exactly, all must hold, all homes are covered, newest enqueue first."""
    dawn = world.now
    names = {}
    for name, values in POPULATION.items():
        names[(await world.enqueue(**values)).id] = name
        if name in "ac":
            await world.run(SUCCEEDED if name == "a" else ruined(), values["queue"])
        world.advance(1)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    states = {key: frozenset(value) for key, value in filters.items() if key == "states"}
    jobs = await world.find_all(**{**filters, **times, **states})
    assert "".join(names[job.id] for job in jobs) == found
    assert jobs == [await world.get(job.id) for job in jobs]


ARGUMENTS: Final = {
    "one": 1,
    "yes": True,
    "no": False,
    "text": "1",
    "half": 0.5,
    "whole": 1.0,
    "nothing": None,
    "deep": {"er": {"x": "y"}},
    "rows": [{"id": 7}, {"id": 8}],
    "map": {"0": "zero"},
    "grüße": "ü",
}

HOLDS: Final[list[tuple[str, Scalar]]] = [
    ("one", 1),
    ("yes", True),
    ("no", False),
    ("text", "1"),
    ("half", 0.5),
    ("whole", 1.0),
    ("nothing", None),
    ("deep.er.x", "y"),
    ("rows.0.id", 7),
    ("rows.1.id", 8),
    ("map.0", "zero"),
    ("grüße", "ü"),
]

HOLDS_NOT: Final[list[tuple[str, Scalar]]] = [
    ("one", True),
    ("one", "1"),
    ("one", 1.0),
    ("one", 2),
    ("one", None),
    ("yes", 1),
    ("yes", "true"),
    ("no", 0),
    ("no", None),
    ("text", 1),
    ("text", ""),
    ("text.0", "1"),
    ("whole", 1),
    ("nothing", ""),
    ("nothing", False),
    ("missing", None),
    ("", None),
    ("one.x", 1),
    ("deep", None),
    ("deep.er", "y"),
    ("deep.x", "y"),
    ("deep.er.x.y", "y"),
    ("rows", 7),
    ("rows.id", 7),
    ("rows.0", 7),
    ("rows.2.id", 8),
    ("rows.-1.id", 8),
    ("map.1", "zero"),
    ("ONE", 1),
]


async def test_where_finds_what_stands_at_a_path(world: World) -> None:
    """S51: a dotted path leads into objects and lists to a plain value of the same type."""
    job = await world.enqueue(payload=payload(**ARGUMENTS))
    await world.enqueue(payload=payload())
    found = [await world.find_all(where=(pair,)) for pair in HOLDS]
    assert found == [[job]] * len(HOLDS)


async def test_where_leaves_out_what_stands_elsewhere_or_is_of_another_type(world: World) -> None:
    """S51: 1 is neither True nor "1" nor 1.0, and nothing is not the same as None."""
    await world.enqueue(payload=payload(**ARGUMENTS))
    found = [pair for pair in HOLDS_NOT if await world.find_all(where=(pair,))]
    assert found == []


async def test_all_of_where_must_hold_beside_the_other_filters(world: World) -> None:
    """S51: two paths and a queue."""
    both = await world.enqueue(queue="mail", payload=payload(x=1, y="z"))
    await world.enqueue(queue="mail", payload=payload(x=1, y="other"))
    await world.enqueue(queue="bulk", payload=payload(x=1, y="z"))
    assert await world.find_all(queue="mail", where=(("x", 1), ("y", "z"))) == [both]
    assert await world.find_all(where=(("x", 1), ("x", 2))) == []


@pytest.mark.parametrize("state", State)
async def test_where_looks_into_jobs_of_every_state(world: World, state: State) -> None:
    """S51: payload filters work in all three homes."""
    claim = await world.bring_to(state, payload=payload(x=1))
    await world.enqueue(payload=payload(x=2))
    assert await world.find_all(where=(("x", 1),)) == [await world.get(claim.job.id)]


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"{", b"[]", b"null", b'{"v":1}', b'{"arguments":5}'])
async def test_an_undecodable_payload_matches_no_path_and_stops_nobody(world: World, raw: bytes) -> None:
    """S33, S51: it is found by every other filter, and all other jobs are found as usual."""
    bad = await world.enqueue(payload=raw)
    good = await world.enqueue(payload=payload(x=1))
    assert await world.find_all(where=(("x", 1),)) == [good]
    assert await world.find_all(where=(("x", None),)) == []
    assert await world.find_all() == [good, bad]


async def test_an_erased_payload_matches_no_path(world: World) -> None:
    """S51, S52: what was forgotten cannot be searched for; the erased job is still found."""
    job = await world.enqueue(payload=payload(x=1))
    await world.store.upkeep.forget(ForgetRequest(scope=Scope("acme"), reason="asked", who="ops"))
    assert await world.find_all(where=(("x", 1),)) == []
    assert [husk.id for husk in await world.find_all()] == [job.id]
