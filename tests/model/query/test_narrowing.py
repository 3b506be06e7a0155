"""What of a query a store answers itself (S78)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.query.narrowing import Narrowing, narrow
from tests.model.query.jobs import JOB_ID

CASES: list[tuple[str, dict[str, Any]]] = [
    ("", {"is_complete": True}),
    ("tenant:acme queue:mail", {"tenant": "acme", "queue": "mail", "is_complete": True}),
    ("task:mail.*", {}),
    ('task:"mail.*"', {"task": "mail.*", "is_complete": True}),
    ("tag:a tag:b", {"tag": "a"}),
    ("tenant:acme,globex", {}),
    ("state:dead state:ready", {"states": frozenset({State.DEAD})}),
    ("state:dead or state:ready", {}),
    ("-state:dead", {}),
    (
        "tenant:acme (queue:mail by:ann)",
        {"tenant": "acme", "queue": "mail", "created_by": "ann", "is_complete": True},
    ),
    ("corr:c", {"correlation_id": "c", "is_complete": True}),
    (f"parent:{JOB_ID}", {"parent_id": JOB_ID, "is_complete": True}),
    (f"id:{JOB_ID}", {"id": JOB_ID, "is_complete": True}),
    ("id:b4e652", {}),
    (f"id:{str(JOB_ID).upper()}", {}),
    ("b4e652", {}),
]


@pytest.mark.parametrize(("query", "found"), CASES, ids=str)
def test_the_store_is_asked_for_what_all_matches_have(query: str, found: dict[str, Any]) -> None:
    """Only what must hold for every job, and only what a store compares exactly."""
    assert narrow(query) == Narrowing(**found)
