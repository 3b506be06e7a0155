"""Finished jobs in files over HTTP: written out, and taken back as they were (S116)."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fairlane.model.access import Role
from fairlane.model.history_line import read_line
from fairlane.testing import Trial
from tests.web.api.callers import NAME_HEADER, Callers
from tests.web.api.fuzzing import application

SECRET = "ann@example.org"
PLAIN = {"accept-encoding": "identity"}


@pytest.fixture
async def shop() -> AsyncIterator[Callers]:
    """A store with a finished job and a dead letter of two tenants each, and one that waits."""
    app = application()
    async with Trial(app) as trial:
        for tenant in ("acme", "globex"):
            await app.aenqueue_by_name("mail.send", {"text": SECRET}, tenant=tenant)
            await app.aenqueue_by_name("mail.drop", {}, tenant=tenant)
        await trial.arun()
        await app.aenqueue_by_name("mail.send", {}, tenant="acme", delay=60)
        yield Callers(app)


async def export(shop: Callers, **values: Any) -> Any:
    """Export as plain text."""
    answer = await shop.ask("POST", "/history/export", json={"note": "audit", **values}, headers=PLAIN)
    assert answer.status_code == 200, answer.text
    return answer


async def bring_back(shop: Callers, data: bytes, **request: Any) -> Any:
    """Import a file."""
    return await shop.ask("POST", "/history/import?note=back", content=data, **request)


async def test_an_export_is_whole_and_chosen_and_audited(shop: Callers) -> None:
    """Nothing is redacted, nothing of what lives is in it; the audit has who asked for what and why."""
    answer = await export(shop, tenant="acme")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert 'filename="history.jsonl"' in answer.headers["content-disposition"]
    assert "x-cursor" not in answer.headers
    found = [read_line(line.encode()).job for line in answer.text.splitlines()]
    assert [(one.tenant, one.task, one.state) for one in found] == [
        ("acme", "mail.drop", "dead"),
        ("acme", "mail.send", "succeeded"),
    ]
    assert SECRET in answer.text
    entries = (await shop.get("/audit?kind=history.export"))["items"]
    assert {(one["actor"], one["origin"], one["note"]) for one in entries} == {("ann", "api", "audit")}
    assert len(entries) == 2


async def test_an_export_goes_on_at_its_cursor(shop: Callers) -> None:
    """Each job once; the header is missing at the end."""
    whole = (await export(shop)).text.splitlines()
    assert len(whole) == 4
    parts: list[str] = []
    cursor = None
    while True:
        answer = await export(shop, limit=3, cursor=cursor)
        parts += answer.text.splitlines()
        cursor = answer.headers.get("x-cursor")
        if cursor is None:
            break
    assert parts == whole


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
async def test_what_was_exported_comes_back(shop: Callers, pack: Callable[[bytes], bytes]) -> None:
    """Plain or gzip, into a store that has none of it; again, it changes nothing."""
    data = pack((await export(shop)).content)
    other = application()
    async with Trial(other):
        there = Callers(other)
        assert (await bring_back(there, data)).json() == {"restored": 4, "known": 0}
        assert (await bring_back(there, data)).json() == {"restored": 0, "known": 4}
        assert (await export(there)).text == (await export(shop)).text
        (entry, *_) = (await there.get("/audit?kind=history.import"))["items"]
        assert (entry["actor"], entry["note"]) == ("ann", "back")


async def test_an_export_is_compressed_for_those_who_take_it(shop: Callers) -> None:
    """As HTTP does it: what is saved is a file that an import takes."""
    body = {"note": "audit"}
    answer = await shop.ask("POST", "/history/export", json=body, headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text == (await export(shop)).text


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "note", "is missing"),
        ({"note": " "}, "note", "regex"),
        ({"note": "x", "state": ["ready"]}, "state", "ready is not over"),
        ({"note": "x", "limit": 0}, "limit", "int"),
        ({"note": "x", "quue": "a"}, "quue", "queue"),
    ],
)
async def test_a_wrong_export_is_refused(shop: Callers, body: Any, field: str, says: str) -> None:
    """With the field, and before anything is read."""
    answer = await shop.ask("POST", "/history/export", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["field"] == field
    assert says in problem["detail"]


async def test_a_wrong_file_is_refused_with_its_line(shop: Callers) -> None:
    """And nothing of it is stored."""
    data = (await export(shop)).content
    other = application()
    async with Trial(other):
        there = Callers(other)
        answer = await bring_back(there, data + b"{}\n")
        assert answer.status_code == 422
        assert "line 5: format: is None" in answer.json()["detail"]
        assert (await bring_back(there, gzip.compress(data)[:-20])).status_code == 422
        assert (await export(there)).text == ""


async def test_an_import_that_is_too_large_is_refused(shop: Callers) -> None:
    """By `web.max_body`, as every request."""
    answer = await bring_back(shop, b" " * (20 * 1_048_576 + 1))
    assert answer.status_code == 413
    assert "send less at a time" in answer.json()["hint"]


async def test_who_may(shop: Callers) -> None:
    """Managers of all tenants: it shows everything. For a caller of one tenant it is not there."""
    for path in ("/history/export", "/history/import?note=x"):
        operator = await shop.ask("POST", path, json={"note": "x"}, role=Role.OPERATOR)
        bound = await shop.ask("POST", path, json={"note": "x"}, tenant="acme")
        assert (operator.status_code, bound.status_code) == (403, 404)
    named = await shop.ask(
        "POST",
        "/history/export",
        json={"note": "x"},
        role=Role.MANAGER,
        headers={NAME_HEADER: "eve"},
    )
    assert named.status_code == 200
    assert len(json.loads(named.text.splitlines()[0])) > 10
