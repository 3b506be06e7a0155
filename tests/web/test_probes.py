"""`/livez`, `/readyz` and `/health`: of the web, and on a port of a worker and a scheduler (S92)."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.diagnosis.health import DUTIES, HealthWatch
from fairlane.diagnosis.probe_port import probe_port
from fairlane.diagnosis.probes import Probes
from fairlane.duties.leader_election import NAME
from fairlane.model.errors import ConfigError, StoreUnavailable
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.runtime.loops import run_all
from fairlane.store.contract import Store
from fairlane.store.contract.registry import (
    LIVE_WITHIN,
    LeadRequest,
    LeaveRequest,
    RegisterRequest,
    WorkerRecord,
)
from fairlane.web.application import asgi
from fairlane.worker.command import why_not_ready
from fairlane.worker.worker import WorkerRuntime
from tests.app.world import World
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.access.visitor import PASSWORD, visiting
from tests.web.boxes import boxes, pages
from tests.web.callers import always, ann, web_of
from tests.worker.world import until

ALL = Scope.all()
WORKER = WorkerRecord(id="worker-1", host="h", pid=1, version="1", queues=("mail",), slots=4)


async def appear(store: Store) -> None:
    """Let a worker be live and a scheduler do the duties."""
    await store.registry.register(RegisterRequest(scope=ALL, record=WORKER, renew_every=4 * SECOND))
    await store.registry.lead(LeadRequest(scope=ALL, name=NAME, worker="scheduler-1", lease=12 * SECOND))


def words(reply: tuple[int, bytes]) -> tuple[int, Any]:
    """Return status and what a reply says."""
    return reply[0], msgspec.json.decode(reply[1])


class _Elapsed:
    """The clock of the watch: every look is a new one."""

    def __init__(self) -> None:
        self.now = 0

    def elapsed(self) -> int:
        """Return a time that is far from the one before."""
        self.now += 10 * SECOND
        return self.now


def probes_of(store: Store) -> Probes:
    """Return probes that look anew each time."""
    return Probes(HealthWatch(lambda: store, _Elapsed()))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(STORES))
async def test_health_fails_when_the_workers_or_the_scheduler_are_gone(name: str) -> None:
    """S92: live and ready go on: the process is there and can work."""
    clock = DrivenClock()
    async with STORES[name](clock) as store:
        probes = probes_of(store)
        status, said = words(await probes("/health"))
        assert (status, said) == (
            503,
            {"status": "failing", "store": "ok", "duties": "failing", "workers": "failing"},
        )
        await appear(store)
        assert words(await probes("/health")) == (
            200,
            {"status": "ok", "store": "ok", "duties": "ok", "workers": "ok"},
        )
        await store.registry.leave(LeaveRequest(scope=ALL, worker=WORKER.id))
        assert words(await probes("/health"))[1]["workers"] == "failing"
        await appear(store)
        clock.advance(12)
        _, said = words(await probes("/health"))
        assert (said["duties"], said["workers"]) == ("failing", "ok")
        clock.advance(LIVE_WITHIN / SECOND)
        status, said = words(await probes("/health", has_details=True))
        assert (status, said["workers"]) == (503, "failing")
        assert said["details"]["workers"] == "no worker is live"
        assert "nobody does them since 20" in said["details"]["duties"]
        assert words(await probes("/livez")) == words(await probes("/readyz")) == (200, {"status": "ok"})


def test_the_duties_are_looked_for_under_their_name() -> None:
    """The scheduler is known by its lead."""
    assert DUTIES == NAME


async def test_without_the_store_the_web_is_live_and_not_ready(world: World, app: Fairlane) -> None:
    """S92: nobody should kill a process for an outage of the store."""
    async with web_of(app, None, groups=[boxes], pages=[pages]) as web:
        await appear(world.oracle)
        world.fail_before = [StoreUnavailable("no route to db://user:hunter2@host")] * 9
        assert (await web.get("/livez")).json() == {"status": "ok"}
        ready, health = await web.get("/readyz"), await web.get("/health")
        assert (ready.status_code, ready.json()) == (503, {"status": "failing"})
        assert (health.status_code, health.json()) == (
            503,
            {"status": "failing", "store": "failing", "duties": "unknown", "workers": "unknown"},
        )
        world.fail_before = []


async def test_a_store_that_does_not_answer_in_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """S92: a probe does not wait for ever."""
    monkeypatch.setattr("fairlane.diagnosis.health.WITHIN", 0.01)

    class Hanging:
        """A store that never answers."""

        registry: Any
        upkeep: Any

        async def status(self, _: object) -> None:
            """Hang."""
            await asyncio.Event().wait()

    hanging = Hanging()
    hanging.registry = hanging
    status, said = words(await probes_of(hanging)("/readyz", has_details=True))  # type: ignore[arg-type]
    assert (status, said) == (503, {"status": "failing", "detail": "no answer within 0.01 s"})


async def test_probing_costs_the_store_little(world: World, app: Fairlane) -> None:
    """S92: of a thousand probes at once the store hears one."""
    async with web_of(app, None, groups=[boxes], pages=[pages]) as web:
        before = len(world.asked)
        answers = await asyncio.gather(*(web.get("/health") for _ in range(100)))
        assert {answer.status_code for answer in answers} == {503}
        assert len(world.asked) - before <= 4


async def test_details_are_for_who_may_see_workers(world: World, app: Fairlane) -> None:
    """S92: not for everybody, not for a caller of one tenant, not with a wrong password; any Host may ask."""
    await app.users.aadd("ann", password=PASSWORD, role="viewer")
    await app.users.aadd("bob", password=PASSWORD, role="admin", tenant="acme")
    await appear(world.oracle)
    web = asgi(app)
    for name, password, has_details in (
        ("ann", PASSWORD, True),
        ("ann", "wrong", False),
        ("bob", PASSWORD, False),
        ("", "", False),
    ):
        async with visiting(app, web=web) as visitor:
            await visitor.enter(name, password)
            answer = await visitor.client.get("/health", headers={"host": "10.1.2.3"})
            assert (answer.status_code, "details" in answer.json()) == (200, has_details), name
            assert ("scheduler-1" in answer.text) == has_details
    for path in ("/livez", "/readyz", "/health"):
        async with web_of(app, None) as client:
            assert (await client.get(path)).status_code == 200
            assert (await client.post(path)).status_code in {403, 405}


async def test_probes_are_below_the_prefix(app: Fairlane) -> None:
    """As everything is."""
    outer = Starlette(routes=[Mount("/ops", app=asgi(app, authenticate=always(ann())))])
    async with visiting(app, web=outer) as visitor:
        assert (await visitor.client.get("/ops/livez")).status_code == 200


# ── on a port ─────────────────────────────────────────────────────────────────


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def ask(port: int, request: str = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") -> tuple[int, str]:
    """Send a request as it is, and return the status and the body; (0, "") for no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    await writer.drain()
    writer.write_eof()
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return (int(head.split(" ")[1]), body) if head else (0, "")


def get(path: str) -> str:
    """Return a request."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"


def with_port(world: World, port: int) -> Fairlane:
    """Return an application whose worker answers probes."""
    return world.app(config={"worker": {"health_port": port}})


async def test_a_port_answers_probes_and_nothing_else(world: World) -> None:
    """S92: no other path, method or text; it closes with the process."""
    port = free_port()
    app = with_port(world, port)
    why = ["it leaves"]
    async with probe_port(app, lambda: why[0]):
        assert await ask(port) == (200, '{"status":"ok"}')
        assert await ask(port, get("/readyz")) == (503, '{"status":"failing","detail":"it leaves"}')
        why[0] = ""
        assert await ask(port, get("/readyz?x=y")) == (200, '{"status":"ok"}')
        status, body = await ask(port, get("/health"))
        assert (status, msgspec.json.decode(body)["workers"], "details" in body) == (503, "failing", False)
        assert (await ask(port, get("/api/v1/jobs")))[0] == 404
        assert await ask(port, "HEAD /livez HTTP/1.1\r\n\r\n") == (200, "")
        assert (await ask(port, "POST /livez HTTP/1.1\r\n\r\n"))[0] == 405
        for bad in ("GET\r\n\r\n", "\xff \xff \xff\r\n\r\n", "x" * 9_000, "GET /livez HTTP/1.1\r\n"):
            assert await ask(port, bad) == (0, "")
    with pytest.raises(OSError, match="Connect call failed"):
        await ask(port)
    await app.aclose()


async def test_two_processes_share_a_port(world: World) -> None:
    """S92: while one takes over from the other, one of them answers."""
    port = free_port()
    first, second = with_port(world, port), with_port(world, port)
    async with probe_port(first):
        async with probe_port(second):
            assert (await ask(port))[0] == 200
        assert (await ask(port))[0] == 200
    await first.aclose()
    await second.aclose()


async def test_a_port_that_cannot_be_had_is_named(world: World) -> None:
    """As a setting that is wrong."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        app = with_port(world, taken.getsockname()[1])
        with pytest.raises(ConfigError, match=r"worker\.health_port"):
            async with probe_port(app):
                pass
    await app.aclose()


async def test_without_the_setting_nothing_listens(app: Fairlane) -> None:
    """The default."""
    assert WorkerSettings().health_port is None
    async with probe_port(app):
        assert not app.client.portal.is_open


async def test_a_worker_says_why_it_is_not_ready(tmp_path: Path) -> None:
    """S92: before it has begun, and when it leaves."""
    app = Fairlane(f"sqlite:///{tmp_path}/fairlane.db")
    await app.client.store.upkeep.migrate()
    worker = WorkerRuntime(app, duties=False)
    assert why_not_ready(worker) == "it has not begun yet"

    async def walk() -> None:
        await until(lambda: worker.is_ready)
        assert why_not_ready(worker) == ""
        worker.stop()
        assert why_not_ready(worker) == "it leaves"

    await run_all(worker.run(), walk())
    await app.aclose()
