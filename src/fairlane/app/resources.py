"""What an application opens once per process: resources, and functions at start-up and shutdown.

`Resources` collects what is declared; `OpenResources` opens it and closes it in reverse order. Each worker,
and each child process that runs handlers, has one `OpenResources`. Knows no store and no job.

Async code runs in the event loop that opens it. Plain code runs in threads, so that it may block: a stop is
noticed during a slow start-up, and a close that hangs delays nothing for longer than its timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from contextvars import copy_context
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from logging import getLogger
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

from fairlane.model.checking import instance, refuse
from fairlane.model.errors import ConfigError
from fairlane.model.failure import shown
from fairlane.model.worker_errors import StartupFailed
from fairlane.runtime.thread_pool import ThreadPool

T = TypeVar("T")
F = TypeVar("F", bound=Callable[[], Any])

MakeResource: TypeAlias = Callable[
    [], Iterator[T] | AsyncIterator[T] | AbstractContextManager[T] | AbstractAsyncContextManager[T]
]
"""A generator function that yields the resource once, or a function that returns a context manager."""

Hook: TypeAlias = Callable[[], Any]
"""A plain or async function that runs at start-up or shutdown."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that closing one resource, or one shutdown function, may take."""

_log: Final = getLogger("fairlane")


class Resources:
    """The resources and hooks that an application has declared. Opens nothing."""

    def __init__(self) -> None:
        self.makers: dict[type[Any], Callable[[], Any]] = {}
        self.startups: list[Hook] = []
        self.shutdowns: list[Hook] = []

    @property
    def is_declared(self) -> bool:
        """Whether there is anything to open or to run."""
        return bool(self.makers or self.startups or self.shutdowns)

    def declare(self, kind: type[Any], make: Callable[[], Any]) -> None:
        """Declare how one resource is made; `ConfigError` if there is one of this kind already."""
        instance("kind of a resource", kind, type, "a class")
        name = f"resource {_name(kind)}"
        if kind in self.makers:
            raise ConfigError("it is declared twice; let one function make it", key=name)
        _refuse_arguments(name, make)
        if iscoroutinefunction(make):
            message = "an async function that returns has no end; yield the resource, and close it afterwards"
            raise ConfigError(message, key=name)
        if isasyncgenfunction(make):
            make = asynccontextmanager(make)
        elif isgeneratorfunction(make):
            make = contextmanager(make)
        self.makers[kind] = make

    def add_hook(self, hooks: list[Hook], name: str, hook: Hook) -> None:
        """Add a function to those that run at start-up or at shutdown."""
        _refuse_arguments(name, hook)
        hooks.append(hook)


class OpenResources:
    """The open resources of one process. Opened and closed in one event loop, read from any thread."""

    def __init__(self, declared: Resources) -> None:
        self._declared = declared
        self._values: dict[type[Any], Any] = {}
        self._closers: list[tuple[str, Callable[[], Awaitable[Any]]]] = []
        self._pool = ThreadPool("fairlane-resources")

    @property
    def is_open(self) -> bool:
        """Whether there is anything to close."""
        return bool(self._closers)

    async def open(self) -> None:
        """Open every resource in the order declared, then run the start-up functions.

        If one raises, what is open is closed again, and `StartupFailed` names it. The shutdown functions run
        only after a complete start: what must be undone in any case belongs into a resource.
        """
        try:
            for kind, make in self._declared.makers.items():
                await self._starting(f"resource {_name(kind)}", self._open(kind, make))
            for hook in self._declared.startups:
                await self._starting(f"on_startup {_name(hook)}", self._call(hook))
        except BaseException:
            await self.close()
            raise
        for hook in self._declared.shutdowns:
            self._closers.append((f"on_shutdown {_name(hook)}", partial(self._call, hook)))

    def get(self, kind: type[T]) -> T:
        """Return the resource of this kind; `ConfigError` if none is declared. From any thread."""
        try:
            return cast("T", self._values[kind])
        except (KeyError, TypeError):
            raise _unknown(kind, self._declared) from None

    async def close(self) -> None:
        """Run the shutdown functions, then close the resources, the last one first.

        What raises, or takes longer than `CLOSE_TIMEOUT`, is logged, and the others are still closed.
        """
        cancelled: asyncio.CancelledError | None = None
        while self._closers:
            name, close = self._closers.pop()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await close()
            except asyncio.CancelledError as error:
                cancelled = error  # of whoever closes: raised when the others are closed, too
            except TimeoutError:
                _report_close(name, f"did not end within {CLOSE_TIMEOUT:g} s and was left alone")
            except BaseException as error:  # noqa: BLE001 (logged, and the others are still closed)
                _report_close(name, f"raised {type(error).__name__}: {shown(error)}")
        self._values.clear()
        self._pool.close()
        if cancelled is not None:
            raise cancelled

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # ── one of them ───────────────────────────────────────────────────────────

    async def _starting(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            message = f"{name}: could not start: {type(error).__name__}: {shown(error)}"
            raise StartupFailed(message) from error

    async def _open(self, kind: type[Any], make: Callable[[], Any]) -> None:
        around = make()
        name = f"resource {_name(kind)}"
        if isinstance(around, AbstractAsyncContextManager):
            entered = cast("AbstractAsyncContextManager[Any]", around)
            value = await entered.__aenter__()
            self._closers.append((name, partial(entered.__aexit__, None, None, None)))
        elif isinstance(around, AbstractContextManager):
            plain = cast("AbstractContextManager[Any]", around)
            value = await self._in_thread(plain.__enter__)
            self._closers.append((name, partial(self._in_thread, partial(plain.__exit__, None, None, None))))
        else:
            message = (
                f"its function must yield it, or return a context manager, not a {type(around).__name__}"
            )
            raise ConfigError(message, key=name)
        if not _is_a(value, kind):
            message = f"a {type(value).__name__} was made instead of a {_name(kind)}"
            raise ConfigError(message, key=name)
        self._values[kind] = value

    async def _call(self, hook: Hook) -> None:
        if iscoroutinefunction(hook):
            await hook()
        else:
            await self._in_thread(hook)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run plain code in a thread; a cancelled wait leaves the thread alone."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

        def finish(value: T | None, error: BaseException | None) -> None:
            if not done.cancelled():
                done.set_result((value, error))

        def run() -> None:
            try:
                value, error = work(), None
            except BaseException as raised:  # noqa: BLE001 (raised again in the loop)
                value, error = None, raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(finish, value, error)

        call = self._pool.submit(partial(copy_context().run, run))
        try:
            value, error = await done
        except asyncio.CancelledError:
            self._pool.abandon(call)
            raise
        self._pool.ended(call)
        if error is not None:
            raise error
        return cast("T", value)


def _refuse_arguments(name: str, function: object) -> None:
    if not callable(function):
        refuse(name, function, "a function")
    try:
        required = [one for one in signature(function).parameters.values() if one.default is one.empty]
    except (TypeError, ValueError):  # written in C
        return
    if any(one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD} for one in required):
        raise ConfigError("it is called without arguments; give its parameters defaults", key=name)


def _is_a(value: object, kind: type[Any]) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that cannot be checked at run time
        return True


def _unknown(kind: object, declared: Resources) -> ConfigError:
    known = ", ".join(sorted(map(_name, declared.makers))) or "none"
    message = f"no such resource is declared; declare it with @app.resource({_name(kind)}). Declared: {known}"
    return ConfigError(message, key=f"resource {_name(kind)}")


def _name(thing: object) -> str:
    return str(getattr(thing, "__name__", None) or repr(thing)[:80])


def _report_close(name: str, what: str) -> None:
    extra = {"event": "close_failed", "resource": name}
    _log.error("closing %s %s; the others are closed", name, what, extra=extra)
