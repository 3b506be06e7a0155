"""Descriptions B and C, who gets in over HTTP: users, tokens, basic authentication, probes, configuration."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import Any, Final

import pytest

from fairlane import Fairlane, Lane, Queue
from fairlane.model.errors import StoreUnavailable
from tests.acceptance.working import QUICK, at_work
from tests.acceptance.world import World
from tests.web.access.visitor import PASSWORD, visiting
from tests.worker.world import until_async

ONE_LANE: Final[dict[str, Any]] = {"queues": [Queue("mail")], "lanes": [Lane("fast", 2, queues=["mail"])]}


async def signed_up(world: World, **settings: Any) -> Fairlane:
    """Return an application with a manager, a viewer and an administrator of one tenant."""
    app = world.app(**settings)
    for name, role, tenant in (("mia", "manager", None), ("vic", "viewer", None), ("tom", "admin", "acme")):
        await app.users.aadd(name, password=PASSWORD, role=role, tenant=tenant)
    return app


def basic(name: str, password: str) -> dict[str, str]:
    """Return the header of basic authentication."""
    return {"authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


async def test_001_nf_17_basic_authentication_is_possible_for_the_dashboard(world: World) -> None:
    """When it is set; otherwise it lets nobody in."""
    app = await signed_up(world, config={"web": {"basic_auth": True}})
    async with visiting(app) as visitor:
        assert await visitor.who(**basic("vic", PASSWORD)) == "vic viewer"
        assert not await visitor.is_in(**basic("vic", "wrong"))
    plain = world.app()
    async with visiting(plain) as visitor:
        assert not await visitor.is_in(**basic("vic", PASSWORD))


async def test_001_ex_24_the_dashboard_has_users_with_roles(world: World) -> None:
    """Each sees the pages of its role and of its tenant; what it may not do is refused."""
    app = await signed_up(world)
    for name, statuses in (
        ("mia", {"/jobs": 200, "/dead": 200, "/workers": 200, "/settings/access": 403}),
        ("vic", {"/jobs": 200, "/dead": 403, "/workers": 200, "/settings/access": 403}),
        ("tom", {"/jobs": 200, "/dead": 200, "/workers": 404, "/settings/access": 404}),
    ):
        async with visiting(app) as visitor:
            assert (await visitor.enter(name)).status_code == 303
            for path, status in statuses.items():
                assert (await visitor.client.get(path)).status_code == status, (name, path)


async def test_002_pm_3_a_token_gets_the_answers_of_a_session(world: World) -> None:
    """The same role, the same tenant, the same answers."""
    app = await signed_up(world)
    for name, role, tenant in (("mia", "manager", None), ("vic", "viewer", None), ("tom", "admin", "acme")):
        token = (await app.tokens.acreate("ci", role=role, tenant=tenant)).secret
        async with visiting(app) as session, visiting(app) as program:
            await session.enter(name)
            for path in ("/jobs", "/dead", "/workers", "/users", "/tenants/globex"):
                by_token = await program.client.get(
                    f"/api/v1{path}", headers={"authorization": f"Bearer {token}"}
                )
                by_session = await session.client.get(f"/api/v1{path}")
                assert by_token.status_code == by_session.status_code != 401, (name, path)


async def test_001_dg_12_health_fails_when_the_store_the_scheduler_or_all_workers_are_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live and ready differ: without the store the process is live and not ready."""
    monkeypatch.setattr("fairlane.diagnosis.health.LOOK_EVERY", 0)
    world.is_recounted = False
    app = await signed_up(world)
    async with visiting(app) as visitor:

        async def probe(path: str) -> tuple[int, Any]:
            answer = await visitor.client.get(path)
            return answer.status_code, answer.json()

        gone = {"status": "failing", "store": "ok", "duties": "failing", "workers": "failing"}
        assert await probe("/health") == (503, gone)
        async with at_work(app, settings=QUICK, duties=True):
            await until_async(lambda: probe("/health"), (200, dict.fromkeys(gone, "ok")))
        assert await probe("/health") == (503, gone)  # it left in good order, and gave up the lead
        assert await probe("/livez") == await probe("/readyz") == (200, {"status": "ok"})

        async def no_store(_: object) -> None:
            raise StoreUnavailable("no route")

        monkeypatch.setattr(app.client.store.registry, "status", no_store, raising=False)
        assert await probe("/livez") == (200, {"status": "ok"})
        assert await probe("/readyz") == (503, {"status": "failing"})
        assert (await probe("/health"))[0] == 503


async def test_001_dv_7_the_configuration_is_shown_queues_lanes_and_store_connection(world: World) -> None:
    """The connection without its password."""
    world.is_recounted = False
    app = await signed_up(world, **ONE_LANE)
    async with visiting(app) as visitor, at_work(app, settings=QUICK):
        await visitor.enter("vic")
        page = (await visitor.client.get("/settings")).text
    for text in ("mail", "fast", "Store", escape(app.settings.url or "")):
        assert text in page
