"""The description of the API, and whether the API is as described."""

from __future__ import annotations

from typing import Final

import pytest
import schemathesis
from jsonschema_rs import ValidationError

from fairlane.model.access import Role
from fairlane.web.api import GROUPS
from fairlane.web.openapi import document
from tests.web.api.callers import Callers
from tests.web.api.fuzzing import fuzzer, new_seed

PARTS: Final = 4
REQUESTS: Final = 2_000


def test_the_document_is_openapi() -> None:
    """By the schema of OpenAPI 3.1 itself, which refuses what is none."""
    found = document(one for group in GROUPS for one in group)
    schemathesis.openapi.from_dict(found).validate()
    found["paths"]["/jobs"]["get"]["parameters"][0]["in"] = "nowhere"
    with pytest.raises(ValidationError, match="nowhere"):
        schemathesis.openapi.from_dict(found).validate()


def test_every_endpoint_is_described() -> None:
    """With its summary, who may use it, and what it answers."""
    endpoints = [one for group in GROUPS for one in group]
    paths = document(endpoints)["paths"]
    found = {one["operationId"]: one for path in paths.values() for one in path.values()}
    assert sorted(found) == sorted(one.name for one in endpoints)
    assert [name for name, one in found.items() if not one["summary"].endswith(".")] == []
    assert "Needs role manager" in found["jobs.reveal"]["description"]
    assert "`see_dead_letters`" in found["dead.find"]["description"]


async def test_a_caller_of_one_tenant_gets_what_is_there_for_it(callers: Callers) -> None:
    """Endpoints about all tenants do not exist for it, here either."""
    whole = await callers.get("/openapi.json")
    part = await callers.get("/openapi.json", tenant="acme", role=Role.VIEWER)
    assert "/queues" in whole["paths"]
    assert "/queues" not in part["paths"]
    assert "/jobs" in part["paths"]
    assert whole["servers"] == [{"url": "/api/v1"}]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_is_as_described(part: int, request: pytest.FixtureRequest) -> None:
    """2,000 requests, allowed and forbidden ones: no 5xx, no status, field or type that is not said."""
    given = request.config.getoption("--hypothesis-seed")
    number = new_seed() if given is None else int(given)
    print(f"seed {number} (repeat with --hypothesis-seed={number})")
    with fuzzer(jobs=6) as made:
        made.fuzz(REQUESTS // PARTS, number, slice(part, None, PARTS))
        assert made.report.requests >= REQUESTS // PARTS
        assert made.report.statuses[200] > made.report.requests // 20
