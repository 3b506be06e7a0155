"""Every form, each role, and what is another tenant's: refused as the endpoint behind it refuses (S79).

The forms are those of the endpoints, so that a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import msgspec
import pytest

from fairlane.model.access import Role
from fairlane.testing import Trial
from fairlane.web.declare import Endpoint
from fairlane.web.problem import NOT_FOUND
from tests.web.api.callers import Callers
from tests.web.api.fuzzing import application
from tests.web.api.test_matrix import BODIES, ENDPOINTS, LEAST_OF, SHARED, Foreign

FORMS: Final = [one for one in ENDPOINTS.values() if one.has_form]


@pytest.fixture
async def foreign() -> AsyncIterator[Foreign]:
    """A store with a waiting job and a dead letter of globex."""
    app = application()
    async with Trial(app) as trial:
        dead = await app.aenqueue_by_name("mail.drop", {}, tenant="globex")
        await trial.arun()
        job = await app.aenqueue_by_name("mail.send", {}, tenant="globex", delay=60)
        yield Foreign(Callers(app), str(job.id), str(dead.id))


async def submit(
    foreign: Foreign,
    endpoint: Endpoint,
    role: Role | None,
    tenant: str | None = None,
    *,
    is_missing: bool = False,
) -> httpx2.Response:
    """Send the form of an endpoint, as a script of our own page does."""
    noun = endpoint.name.partition(".")[0]
    named = str(foreign.values.get(noun, ("unknown", "missing"))[is_missing])
    kind = endpoint.body
    takes_note = kind is not None and "note" in kind.__struct_fields__
    body: dict[str, Any] = {**({"note": "x"} if takes_note else {}), **BODIES.get(endpoint.name, {})}
    values = {
        name: one if isinstance(one, str) else msgspec.json.encode(one).decode() for name, one in body.items()
    }
    fields = {**values, **dict.fromkeys(endpoint.fields, named)}
    headers = {"sec-fetch-site": "same-origin", "hx-request": "true"}
    headers |= {} if role is None else {"x-test-role": role.value}
    headers |= {} if tenant is None else {"x-test-tenant": tenant}
    transport = httpx2.ASGITransport(app=foreign.callers.web)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.post(f"/do/{endpoint.name}", data=fields, headers=headers)


def status_of(answer: httpx2.Response) -> int:
    """Return the status that the endpoint would answer with; a form is told a line, always as 422."""
    if answer.status_code == 422:
        for text, status in (("needs a caller who is known", 401), ("this needs", 403), (NOT_FOUND, 404)):
            if text in answer.text:
                return status
    return answer.status_code


def test_there_are_forms() -> None:
    """What is generated must not be empty."""
    assert len(FORMS) > 40


@pytest.mark.parametrize("endpoint", FORMS, ids=lambda one: one.name)
async def test_each_role_may_send_the_forms_of_its_endpoints(foreign: Foreign, endpoint: Endpoint) -> None:
    """Nobody: 401. Less than the least role: 403. From it on: neither."""
    assert status_of(await submit(foreign, endpoint, None)) == 401
    for role in Role:
        status = status_of(await submit(foreign, endpoint, role))
        if role.includes(LEAST_OF[endpoint.name]):
            assert status not in {401, 403, 500}, role
        else:
            assert status == 403, role


@pytest.mark.parametrize("endpoint", FORMS, ids=lambda one: one.name)
async def test_what_is_anothers_is_not_there_for_a_form(foreign: Foreign, endpoint: Endpoint) -> None:
    """To a caller of one tenant, of whatever role: the same line as for what nobody has."""
    if endpoint.tenants == "own" and not set(endpoint.fields) - SHARED:
        return  # it names nothing that belongs to a tenant
    for role in Role:
        other = await submit(foreign, endpoint, role, "acme")
        missing = await submit(foreign, endpoint, role, "acme", is_missing=True)
        is_hidden = endpoint.tenants == "all" or role.includes(LEAST_OF[endpoint.name])
        assert status_of(other) == (404 if is_hidden else 403), role
        assert (other.status_code, without_request(other)) == (missing.status_code, without_request(missing))


def without_request(answer: httpx2.Response) -> str:
    """Return what an answer says, without the id of its request."""
    return answer.text.replace(answer.headers["x-request-id"], "")
