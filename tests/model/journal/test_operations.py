"""What an operator does, as an entry of the audit: who, what, before and after, and no payload (S60)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import Operation, created_entry, entry_of, job_entry
from fairlane.model.lifecycle.states import State
from tests.model.retry.test_decision import NOW, job

ANN: Final = Operation(action="jobs.edit", actor="ann", origin="cli")
WHO: Final = {"actor": "ann", "origin": "cli"}
ID: Final = str(UUID(int=1))


def body(entry: NewEntry) -> dict[str, Any]:
    """Decode what an entry says; it must be JSON with sorted keys and without secrets."""
    assert b"secret" not in entry.body
    found: dict[str, Any] = msgspec.json.decode(entry.body)
    assert entry.body == msgspec.json.encode(found, order="sorted")
    return found


def test_an_entry_says_who_from_where_and_nothing_that_is_not_known() -> None:
    """Its kind is the action; without a tenant it concerns all."""
    entry = entry_of(ANN, "queue bulk", None)
    assert entry == NewEntry(kind="jobs.edit", subject="queue bulk", body=b'{"actor":"ann","origin":"cli"}')
    assert body(entry_of(ANN, "queue bulk", None, {}, {})) == WHO


def test_an_entry_says_all_that_is_known() -> None:
    """Why, what the request says besides, and what it changed."""
    operation = msgspec.structs.replace(
        ANN, note="too many", details={"filter": {"queue": "bulk"}, "jobs": 7}
    )
    entry = entry_of(operation, "tenant acme", "acme", {"paused": 1}, {"paused": None})
    assert (entry.kind, entry.tenant, entry.subject, entry.count) == ("jobs.edit", "acme", "tenant acme", 1)
    assert body(entry) == {
        **WHO,
        "note": "too many",
        "details": {"filter": {"queue": "bulk"}, "jobs": 7},
        "before": {"paused": 1},
        "after": {"paused": None},
    }


@pytest.mark.parametrize(
    ("values", "before", "after"),
    [
        ({"priority": 9}, {"priority": 0}, {"priority": 9}),
        ({"tags": ("a",)}, {"tags": []}, {"tags": ["a"]}),
        ({"expires_at": 5}, {"expires_at": None}, {"expires_at": 5}),
        ({"run_at": 5, "sort_key": 5}, {"run_at": NOW}, {"run_at": 5}),
        ({"because": "asked: why", "is_cancel_asked": True}, {"because": None}, {"because": "asked: why"}),
        (
            {"payload": b"secret", "checksum": 7, "version": 2},
            {"checksum": 0, "version": 1},
            {"checksum": 7, "version": 2},
        ),
        (
            {"state": State.DEAD, "because": "condemned", "settled_at": 9},
            {"state": "running", "because": None},
            {"state": "dead", "because": "condemned"},
        ),
    ],
    ids=str,
)
def test_a_changed_job_is_noted_with_what_differs(
    values: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Of its arguments only that they are others."""
    old = job(payload=b"secret before", metadata=b"secret")
    entry = job_entry(ANN, old, msgspec.structs.replace(old, **values))
    assert (entry.kind, entry.tenant, entry.subject) == ("jobs.edit", "acme", ID)
    assert body(entry) == {**WHO, "before": before, "after": after}


def test_a_job_that_is_gone_is_noted_with_its_last_state() -> None:
    """There is no after."""
    entry = job_entry(ANN, job(state=State.DEAD), None)
    assert (entry.tenant, entry.subject) == ("acme", ID)
    assert body(entry) == {**WHO, "before": {"state": "dead"}}


@pytest.mark.parametrize("parent", [None, UUID(int=5)])
def test_a_job_that_was_made_is_noted_with_its_place_and_parent(parent: UUID | None) -> None:
    """There is no before."""
    entry = created_entry(ANN, job(state=State.READY, parent_id=parent, payload=b"secret"))
    assert (entry.tenant, entry.subject) == ("acme", ID)
    after = {"state": "ready", "queue": "bulk", "task": "send", "parent": parent and str(parent)}
    assert body(entry) == {**WHO, "after": after}
