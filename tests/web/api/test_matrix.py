"""Every endpoint, each role, and what is another tenant's: 401, 403 or 404 as this table says.

The requests are made from the routes. The table is written by hand, so that an endpoint is not open to
somebody because of a slip in its declaration; one that is not in it fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any, Final
from uuid import uuid4

import httpx2
import msgspec
import pytest

from fairlane.model.access import Role
from fairlane.testing import Trial
from fairlane.web.api import GROUPS
from fairlane.web.declare import Endpoint
from tests.web.api.callers import NAME_HEADER, Callers
from tests.web.api.fuzzing import application

LEAST: Final[dict[Role, str]] = {
    Role.VIEWER: """
        shares.find shares.get
        jobs.find jobs.count jobs.get jobs.explain jobs.trace jobs.attempts jobs.logs jobs.result
        queues.find queues.get queues.stats queues.contents tenants.find tenants.get tasks.find tasks.get
        schedules.find schedules.get schedules.next schedules.history schedules.preview
        workers.find workers.get workers.status duties.find gates.find gates.get gates.rates queues.rates
        budgets.find budgets.get budgets.spend breakers.find breakers.get
        events.find events.stream audit.find audit.get audit.export statistics.queues statistics.jobs
        statistics.failures statistics.retries about.openapi
    """,
    Role.OPERATOR: """
        jobs.enqueue jobs.enqueue_many jobs.cancel jobs.run_now jobs.fail jobs.take_back jobs.condemn
        jobs.again jobs.cancel_all jobs.run_now_all queues.pause queues.resume queues.close queues.open
        tenants.pause tenants.resume tenants.close tenants.open tenants.drain tasks.pause tasks.resume
        tasks.close tasks.open tasks.enqueue workers.pause workers.resume workers.stop duties.run
        schedules.pause schedules.resume schedules.run schedules.recompute breakers.reset
    """,
    Role.MANAGER: """
        jobs.edit jobs.reveal jobs.condemn_all dead.find dead.groups dead.statistics dead.get
        dead.acknowledge dead.note dead.reprocess dead.resolve dead.ignore dead.discard dead.delete
        dead.payload dead.acknowledge_all dead.reprocess_all dead.resolve_all dead.ignore_all
        dead.discard_all dead.delete_all tenants.purge
        schedules.add schedules.edit schedules.reset schedules.remove schedules.backfill
        breakers.open breakers.close history.export history.import
    """,
    Role.ADMIN: """
        queues.set queues.reset queues.remove tenants.declare tenants.set tenants.reset tenants.forget
        jobs.inspect store.contents tasks.set tasks.reset workers.dump gates.set gates.reset audit.verify
        budgets.set budgets.reset
        users.find users.get users.add users.set users.remove tokens.find tokens.create tokens.revoke
        sessions.find sessions.end
    """,
}
"""The least role of each endpoint."""

ALL_TENANTS: Final = """
    shares.find shares.get
    jobs.inspect store.contents
    queues.find queues.get queues.stats queues.pause queues.resume queues.close queues.open queues.set
    queues.reset queues.remove queues.rates gates.rates tenants.declare tenants.drain tenants.pause
    tenants.resume tenants.close tenants.open tenants.set tenants.reset tasks.find tasks.get tasks.pause
    tasks.resume tasks.close tasks.open tasks.set tasks.reset tasks.enqueue workers.find workers.get
    workers.status workers.dump workers.pause workers.resume workers.stop gates.find gates.get gates.set
    gates.reset breakers.find breakers.get breakers.open breakers.close breakers.reset
    duties.find duties.run budgets.find budgets.get budgets.spend budgets.set budgets.reset
    schedules.add schedules.edit schedules.pause schedules.resume schedules.run schedules.reset
    schedules.remove schedules.recompute schedules.backfill
    history.export history.import
    audit.verify users.find users.get users.add users.set users.remove tokens.find tokens.create
    tokens.revoke sessions.find sessions.end
"""
"""What is not there for a caller of one tenant."""

SHARED: Final = {"queue"}
"""What stands in a path and belongs to nobody: its name is the same for all tenants."""

BODIES: Final[dict[str, Any]] = {
    "jobs.enqueue": {"task": "mail.drop", "tenant": "acme"},
    "jobs.enqueue_many": {"jobs": [{"task": "mail.drop", "tenant": "acme"}]},
    "jobs.edit": {"priority": 3},
    "jobs.fail": {"note": "x", "retry": True},
    "jobs.cancel_all": {"query": "tag:none"},
    "jobs.run_now_all": {"query": "tag:none"},
    "jobs.condemn_all": {"query": "tag:none", "note": "x"},
    "tasks.enqueue": {"tenant": "acme"},
    "schedules.add": {"name": "own", "task": "mail.drop", "every": 60},
    "schedules.backfill": {"note": "x", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
    "budgets.set": {"ceiling": "5.00"},
    "users.add": {"name": "bob", "password": "correct horse battery", "role": "viewer"},
    "tokens.create": {"name": "ci", "role": "viewer"},
}
"""What an endpoint needs to be sent besides a note."""

ENDPOINTS: Final = {one.name: one for group in GROUPS for one in group}
NOUNS: Final = sorted({name.partition(".")[0] for name in ENDPOINTS})
LEAST_OF: Final = {name: role for role, names in LEAST.items() for name in names.split()}


class Foreign:
    """An application, and what in it belongs to tenant globex."""

    def __init__(self, callers: Callers, job: str, letter: str) -> None:
        """Note them."""
        self.callers = callers
        self.numbers = count()
        self.values: dict[str, tuple[Any, Any]] = {
            "jobs": (job, uuid4()),
            "dead": (letter, uuid4()),
            "tenants": ("globex", "nobody"),
            "audit": (1, 4_711),
            "schedules": ("theirs", "nothing"),
        }

    def path(self, endpoint: Endpoint, *, is_missing: bool = False) -> str:
        """Return the path to what is globex's, or to what does not exist."""
        noun = endpoint.name.partition(".")[0]
        found = self.values.get(noun, ("unknown", "missing"))[is_missing]
        path = endpoint.path
        for name in endpoint.fields:
            path = path.replace(f"{{{name}}}", str(found)).replace(f"{{{name}:int}}", str(found))
        return path

    async def ask(
        self, endpoint: Endpoint, role: Role | None, tenant: str | None = None, *, is_missing: bool = False
    ) -> httpx2.Response:
        """Send a request that is right but for who sends it."""
        kind = endpoint.body
        takes_note = kind is not None and "note" in kind.__struct_fields__
        body = BODIES.get(endpoint.name, {"note": "x"} if takes_note else {})
        path = self.path(endpoint, is_missing=is_missing)
        sent: dict[str, Any] = {} if kind is None else {"json": body}
        sent["headers"] = {NAME_HEADER: f"caller {next(self.numbers)}"}  # one caller would ask too often
        return await self.callers.ask(endpoint.method, path, role=role, tenant=tenant, **sent)


@pytest.fixture
async def foreign() -> AsyncIterator[Foreign]:
    """A store with a waiting job and a dead letter of globex, and an entry of the audit."""
    app = application()
    async with Trial(app) as trial:
        dead = await app.aenqueue_by_name("mail.drop", {}, tenant="globex")
        await trial.arun()
        job = await app.aenqueue_by_name("mail.send", {}, tenant="globex", delay=60)
        await app.jobs.arun_now(job.id)
        await app.schedules.aadd("theirs", "mail.drop", every=60, tenant="globex")
        yield Foreign(Callers(app), str(job.id), str(dead.id))


def test_every_endpoint_is_classified() -> None:
    """A new one is a decision: who may use it, and whether it is there for callers of one tenant."""
    assert sorted(LEAST_OF) == sorted(ENDPOINTS)
    assert sorted(ALL_TENANTS.split()) == sorted(
        name for name, one in ENDPOINTS.items() if one.tenants == "all"
    )


@pytest.mark.parametrize("noun", NOUNS)
async def test_each_role_may_do_what_the_table_says(foreign: Foreign, noun: str) -> None:
    """Nobody: 401. Less than the least role: 403. From it on: neither."""
    for endpoint in endpoints_of(noun):
        assert (await foreign.ask(endpoint, None)).status_code == 401, endpoint.name
        for role in Role:
            if not role.includes(LEAST_OF[endpoint.name]):
                assert (await foreign.ask(endpoint, role)).status_code == 403, endpoint.name
            elif endpoint.produces != "text/event-stream":  # it has no end
                assert (await foreign.ask(endpoint, role)).status_code not in {401, 403, 500}, endpoint.name


@pytest.mark.parametrize("noun", NOUNS)
async def test_what_is_anothers_is_not_there(foreign: Foreign, noun: str) -> None:
    """To a caller of one tenant, of whatever role: the same body and headers as for what nobody has."""
    for endpoint in endpoints_of(noun):
        if endpoint.tenants == "own" and not set(endpoint.fields) - SHARED:
            continue  # it names nothing that belongs to a tenant
        for role in Role:
            other = await foreign.ask(endpoint, role, "acme")
            missing = await foreign.ask(endpoint, role, "acme", is_missing=True)
            is_hidden = endpoint.tenants == "all" or role.includes(LEAST_OF[endpoint.name])
            assert other.status_code == (404 if is_hidden else 403), endpoint.name
            assert told(other) == told(missing), endpoint.name


@pytest.mark.parametrize("noun", NOUNS)
async def test_naming_another_tenant_finds_nothing(foreign: Foreign, noun: str) -> None:
    """In a query or in a body: 404, and the same for a tenant that nobody has."""
    for endpoint in endpoints_of(noun):
        sent = [naming_a_tenant(endpoint, tenant) for tenant in ("globex", "nobody")]
        path = foreign.path(endpoint)
        answers = [
            await foreign.callers.ask(endpoint.method, path, tenant="acme", **one)
            for one in sent
            if one is not None
        ]
        assert {one.status_code for one in answers} <= {404}, endpoint.name
        assert len({str(told(one)) for one in answers}) <= 1, endpoint.name


async def test_nothing_was_changed_by_all_this(foreign: Foreign) -> None:
    """Whoever tried: the job and the letter of globex are as they were."""
    for endpoint in ENDPOINTS.values():
        if endpoint.is_change:
            await foreign.ask(endpoint, Role.ADMIN, "acme")
    app = foreign.callers.app
    job, letter = foreign.values["jobs"][0], foreign.values["dead"][0]
    assert (await app.jobs.aget(job)).state == "ready"
    assert (await app.dead.aget(letter)).notes == ()
    assert not (await app.tenants.aget("globex")).paused


def endpoints_of(noun: str) -> list[Endpoint]:
    """Return the endpoints of a noun."""
    return [one for name, one in ENDPOINTS.items() if name.partition(".")[0] == noun]


def naming_a_tenant(endpoint: Endpoint, tenant: str) -> dict[str, Any] | None:
    """Return a query or a body that names a tenant; None if the endpoint takes no such name."""
    if endpoint.query is not None and "tenant" in endpoint.query.__struct_fields__:
        return {"params": {"tenant": tenant}}
    if endpoint.body is not None and "tenant" in endpoint.body.__struct_fields__:
        return {"json": {"note": "x", **BODIES.get(endpoint.name, {}), "tenant": tenant}}
    return None


def told(response: httpx2.Response) -> tuple[Any, Any]:
    """Return what a response says, without the id of its request."""
    headers = {name: value for name, value in response.headers.items() if name != "x-request-id"}
    body: Any = msgspec.json.decode(response.content)
    return headers, {name: value for name, value in body.items() if name != "request_id"}
