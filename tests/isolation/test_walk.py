"""Every public callable from inside a handler of acme: refused, or of acme alone, however it is called."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner, Result

from fairlane import EntryNotFound, Fairlane, JobNotFound, OutsideTenant, Refused, ScheduleNotFound
from fairlane.cli.main import cli
from tests.isolation import table
from tests.isolation.discovery import public_callables, twin_of
from tests.isolation.table import CALLS, NOT_FOUND, OWN, REFUSED, Line, classified, target
from tests.isolation.world import SECRET, Scene, World
from tests.servers import schemas, valkey

Ended: TypeAlias = Any
"""What a call returned, or raised."""

Ends: TypeAlias = list[Ended]

# A handler that waits for a job holds its slot, which is warned of; here nobody waits.
pytestmark = pytest.mark.filterwarnings("ignore:.*occupies a slot meanwhile:RuntimeWarning")


# ── everything is in the table ───────────────────────────────────────────────


def test_every_public_callable_is_classified_and_nothing_else() -> None:
    """A new one needs a line in tests/isolation/table.py: how it ends inside, or why it reaches no store."""
    found, known = public_callables(), set(classified())
    twins = {twin_of(name) for name in known}
    assert sorted(found - known - twins) == []
    assert sorted(known - found) == []


def test_nothing_is_both_called_and_said_to_reach_no_store() -> None:
    """Nor is any listed twice."""
    called = {line.name for line in CALLS}
    excused = Counter(name for names in table.UNTOUCHED.values() for name in names.split())
    assert [name for name, count in excused.items() if count > 1 or name in called] == []


@pytest.mark.parametrize("name", ["Jobs.relive", "Fairlane.doors", "Doors.pause", "revive"])
def test_the_walk_finds_what_is_new(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method, an attribute with methods of its own, a function: each makes the table incomplete."""
    import fairlane  # noqa: PLC0415 (to be changed here)
    from fairlane import _public  # noqa: PLC0415 (as above)

    class Doors:
        """Something new."""

        def pause(self, name: str) -> None:
            """Do something new."""

    def doors(self: object) -> Doors:
        """Return something new."""
        return Doors()

    def revive(id: str) -> None:
        """Do something new."""

    def relive(self: object) -> None:
        """Do something new."""

    Doors.__module__ = revive.__module__ = "fairlane.app.doors"
    doors.__annotations__["return"] = Doors
    monkeypatch.setattr(fairlane.Fairlane, "doors", property(doors), raising=False)
    monkeypatch.setattr(fairlane.Jobs, "relive", relive, raising=False)
    monkeypatch.setattr(fairlane, "revive", revive, raising=False)
    monkeypatch.setattr(_public, "__all__", [*_public.__all__, "revive"])
    assert name in public_callables() - set(classified())


# ── the ways to call ─────────────────────────────────────────────────────────


def run_line(line: Line, scene: Scene) -> Ended:
    """Make one call, plainly, and return how it ended."""
    try:
        args, named = line.arguments(scene)
        answer = target(line, scene, twin=False)(*args, **named)
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        return _entered(answer)
    except Exception as error:  # noqa: BLE001 (looked at by the test)
        return error


async def await_line(line: Line, scene: Scene) -> Ended:
    """Make one call by its async twin, or in a thread if it has none."""
    try:
        args, named = line.arguments(scene)
        call = target(line, scene, twin=True)
        if asyncio.iscoroutinefunction(call):
            return _entered(await _to_its_end(call(*args, **named)))
        answer = await asyncio.to_thread(call, *args, **named)
        if isinstance(answer, AsyncIterator):
            return [one async for one in answer]
        return _entered(answer)
    except Exception as error:  # noqa: BLE001 (as above)
        return error


async def _to_its_end(work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a call also while the handler is cancelled: `forget` asks even its own job to stop."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
        except Exception:  # noqa: BLE001 (raised below)
            break
    return task.result()


def _entered(answer: Any) -> Any:
    if isinstance(answer, AbstractContextManager) and hasattr(answer, "gen"):
        with answer:
            return None
    return list(answer) if isinstance(answer, Iterator) else answer


def plain(scene: Scene, ends: Ends) -> Callable[[], None]:
    """Call from a plain handler."""

    def probe() -> None:
        ends.extend(run_line(line, scene) for line in CALLS)

    return probe


def nested(scene: Scene, ends: Ends) -> Callable[[], None]:
    """Call from inside the same tenant once more."""

    def probe() -> None:
        with scene.app.tenant("acme"):
            ends.extend(run_line(line, scene) for line in CALLS)

    return probe


def in_thread(scene: Scene, ends: Ends, *, with_context: bool) -> Callable[[], None]:
    """Call from a thread that the handler starts."""

    def probe() -> None:
        context = contextvars.copy_context() if with_context else contextvars.Context()
        thread = threading.Thread(target=context.run, args=(plain(scene, ends),))
        thread.start()
        thread.join()

    return probe


def second_application(scene: Scene, ends: Ends) -> Callable[[], None]:
    """Call by another application, which the handler makes on the same store: whose code it is counts."""

    def probe() -> None:
        with Fairlane(scene.url) as other:
            plain(scene.beside(other), ends)()

    return probe


def own_thread(scene: Scene, ends: Ends) -> Callable[[], None]:
    """Call from a thread that has the handler's context."""
    return in_thread(scene, ends, with_context=True)


def bare_thread(scene: Scene, ends: Ends) -> Callable[[], None]:
    """Call from a thread without it."""
    return in_thread(scene, ends, with_context=False)


def asynchronous(scene: Scene, ends: Ends) -> Callable[[], Coroutine[Any, Any, None]]:
    """Call from an async handler, the twins."""

    async def probe() -> None:
        for line in CALLS:
            ends.append(await await_line(line, scene))

    return probe


def own_task(scene: Scene, ends: Ends) -> Callable[[], Coroutine[Any, Any, None]]:
    """Call from an asyncio task that the handler starts."""

    async def probe() -> None:
        await _to_its_end(asynchronous(scene, ends)())

    return probe


def bare_task(scene: Scene, ends: Ends) -> Callable[[], Coroutine[Any, Any, None]]:
    """Call from an asyncio task that was given an empty context."""

    async def probe() -> None:
        work = asynchronous(scene, ends)()
        await asyncio.get_running_loop().create_task(work, context=contextvars.Context())

    return probe


WAYS: dict[str, Callable[[Scene, Ends], Callable[[], Any]]] = {
    "plain": plain,
    "nested": nested,
    "thread": own_thread,
    "second application": second_application,
    "async": asynchronous,
    "task": own_task,
}
BARE = {"thread": bare_thread, "task": bare_task}


# ── the walk ─────────────────────────────────────────────────────────────────


@asynccontextmanager
async def sqlite_url(folder: Path) -> AsyncIterator[str]:
    """A file."""
    yield f"sqlite:///{folder}/fairlane.db"


@asynccontextmanager
async def postgres_url(folder: Path) -> AsyncIterator[str]:
    """A schema of a private server."""
    async with schemas.lent_schema() as schema:
        yield schemas.url_of(schema)


@asynccontextmanager
async def redis_url(folder: Path) -> AsyncIterator[str]:
    """A prefix of a private server."""
    async with valkey.lent_prefix() as prefix:
        yield valkey.url_of(prefix)


URLS = {"postgres": postgres_url, "redis": redis_url, "sqlite": sqlite_url}


@pytest.fixture(params=URLS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Two tenants in a store of each kind."""
    async with URLS[request.param](tmp_path) as url:
        made = World(url, tmp_path)
        await made.scene.fill()
        yield made
        for app in made.apps:
            await app.aclose()


def shown(value: Any) -> str:
    """Show all of an answer."""
    if isinstance(value, Mapping):
        return " ".join(f"{shown(key)}: {shown(item)}" for key, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return " ".join(map(shown, value))
    return repr(value)


def wrong(line: Line, ended: Ended, scene: Scene) -> str | None:
    """Say what is wrong with how a call ended; None if nothing is."""
    kinds: dict[object, type[BaseException] | tuple[type[BaseException], ...]] = {
        REFUSED: Refused,
        NOT_FOUND: (JobNotFound, EntryNotFound, ScheduleNotFound),
    }
    if line.ends in kinds:
        return None if isinstance(ended, kinds[line.ends]) else f"{line.name}: {ended!r}, not {line.ends}"
    assert line.ends == OWN
    if isinstance(ended, BaseException):
        return f"{line.name}: {ended!r}"
    seen = shown(ended)
    marks = [SECRET, "globex", "system", str(scene.theirs.id), str(scene.their_delayed.id)]
    found = [mark for mark in marks if mark in seen]
    return f"{line.name}: shows {found} in {seen[:500]}" if found else None


async def walk(world: World, scene: Scene, way: Callable[[Scene, Ends], Callable[[], Any]]) -> Ends:
    """Make every call of the table inside a handler of acme; nothing of others may have changed by that."""
    before = await world.others()
    ends: Ends = []
    await world.run_as_acme(way(scene, ends))
    assert len(ends) == len(CALLS)
    assert await world.others() == before
    assert world.outbox() == ["globex"]
    return ends


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_handler_sees_and_changes_its_own_tenant_alone(
    world: World, way: Callable[[Scene, Ends], Callable[[], Any]]
) -> None:
    """S9: whatever it calls, from wherever below it."""
    ends = await walk(world, world.scene, way)
    judged = (wrong(line, ended, world.scene) for line, ended in zip(CALLS, ends, strict=True))
    assert [one for one in judged if one is not None] == []


@pytest.mark.parametrize("way", BARE.values(), ids=BARE)
async def test_code_without_the_handler_s_context_is_refused_whatever_it_calls(
    world: World, way: Callable[[Scene, Ends], Callable[[], Any]]
) -> None:
    """S9: not unscoped."""
    ends = await walk(world, world.scene, way)
    calls = zip(CALLS, ends, strict=True)
    assert [(line.name, ended) for line, ended in calls if not isinstance(ended, OutsideTenant)] == []


@pytest.mark.parametrize(
    "words", [["jobs", "list"], ["tenants", "list"], ["limits", "tenant", "acme"], ["doctor"]]
)
async def test_the_command_line_called_by_a_handler_is_refused(world: World, words: list[str]) -> None:
    """S9: it acts for all tenants. A process of its own is beyond the walls."""
    ran: list[Result] = []

    def probe() -> None:
        ran.append(CliRunner().invoke(cli, ["--url", Scene.url, *words]))

    await world.run_as_acme(probe)
    assert (ran[0].exit_code, ran[0].stdout) == (1, "")
    assert "the command line acts for all tenants, and this code acts for tenant acme" in ran[0].stderr
