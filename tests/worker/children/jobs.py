"""The application that the tests of child processes run; children import it by name."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import apsw

from fairlane import (
    Backoff,
    Breaker,
    Budget,
    Context,
    ErrorClass,
    Fairlane,
    Retry,
    Snooze,
    SoftTimeout,
    Task,
    current_job,
    current_tenant,
)
from fairlane.worker.children.protocol import MetadataWritten, Spent

app = Fairlane(name="children")

AnyTask: TypeAlias = Task[..., Any]

if os.environ.get("TEST_IMPORT_FAILS") and "fairlane.worker.children.child" in " ".join(sys.orig_argv):
    message = os.environ["TEST_IMPORT_FAILS"]
    raise RuntimeError(message)

entered: ContextVar[str] = ContextVar("entered", default="")
seen: ContextVar[str] = ContextVar("seen", default="")


@app.tenant_context
@contextmanager
def _enter(ctx: Context) -> Iterator[None]:
    entered.set(ctx.tenant)
    yield


def note(file: str, *words: object) -> None:
    """Append a line to a file, for the test to read."""
    with Path(file).open("a") as out:
        out.write(" ".join(str(word) for word in words) + "\n")


# ── handlers that go well ────────────────────────────────────────────────────


@app.task(isolation="process")
def add(a: int, b: int) -> int:
    """Return a sum."""
    return a + b


@app.task(isolation="process")
async def aadd(a: int, b: int) -> int:
    """Return a sum, later."""
    await asyncio.sleep(0)
    return a + b


@app.task
def add_here(a: int, b: int) -> int:
    """Return a sum, in the worker itself."""
    return a + b


@app.task
def pid_here() -> int:
    """Return which process runs this, which asks for none of its own."""
    return os.getpid()


@app.task
async def apid_here() -> int:
    """The same, as a coroutine."""
    return os.getpid()


@app.task(isolation="process")
def whoami(ctx: Context) -> dict[str, Any]:
    """Return what a handler can know of itself."""
    before = seen.get()
    seen.set(ctx.tenant)
    ctx.log.info("hello from %s", ctx.tenant)
    ctx.progress(0.5, "half")
    return {
        "pid": os.getpid(),
        "tenant": current_tenant(),
        "job": str(current_job().id),
        "hook": entered.get(),
        "before": before,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "thread": threading.current_thread() is threading.main_thread(),
        "cancelled": ctx.cancelled,
        "schedule": ctx.schedule,
        "slot": ctx.slot,
    }


@app.task(isolation="process", retry=Backoff.delays(0))
def write_metadata(ctx: Context, ends: str) -> dict[str, Any]:
    """Note each attempt, and a hundred steps of it; end the first one so."""
    before = dict(ctx.metadata)
    ctx.metadata["attempts"] = ctx.attempt
    for step in range(100):
        ctx.metadata["step"] = step
    if ctx.attempt > 1:
        return before
    if ends == "raises":
        message = "once more"
        raise ValueError(message)
    if ends == "dies":
        _wait_for_step(ctx, 99)
        os.kill(os.getpid(), signal.SIGKILL)
    if ends == "lies":
        ctx._control._connection.send(MetadataWritten(b"[nonsense"))  # type: ignore[attr-defined]
        time.sleep(60)  # killed long before
    return before


@app.task(isolation="process", retry=Backoff.delays(0), budget=Budget("children", 100, "USD"))
def spend(ctx: Context, ends: str) -> None:
    """Spend three times; end the first attempt so."""
    for _ in range(3):
        ctx.spend("0.10", "USD")
    if ctx.attempt == 1 and ends == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if ctx.attempt == 1 and ends == "lies":
        ctx._control._connection.send(Spent(-1))  # type: ignore[attr-defined]
        time.sleep(60)  # killed long before


class Down(Exception):  # noqa: N818 (what a service is)
    """What a service answers that is down."""


@app.task(
    isolation="process",
    max_attempts=1,
    breaker=Breaker("children", failures=3, open_for=600, errors=(Down,)),
)
def call_behind_breaker(how: str) -> None:
    """Call a service that is down, or fail by ourselves."""
    raise Down if how == "down" else ValueError(how)


@app.task(isolation="process", max_attempts=1)
def call_in_block(how: str) -> None:
    """Call a service, which is down or up, within the block of a breaker."""
    with app.breaker("children"):
        if how == "down":
            raise Down


@app.task(isolation="process", max_attempts=1)
async def acall_in_block(how: str) -> None:
    """Call a service, which is down or up, within the block of a breaker."""
    async with app.breaker("children"):
        if how == "down":
            raise Down


def _wait_for_step(ctx: Context, step: int) -> None:
    """Wait until the worker has stored a step, as seen by the job's own application."""
    while app.jobs.get(ctx.job.id).metadata.get("step") != step:
        time.sleep(0.01)


@app.task(isolation="process")
def enqueue_child(n: int) -> str:
    """Enqueue another job from inside."""
    return str(add.enqueue(n, n).id)


@app.task(isolation="process")
async def aenqueue_child(n: int) -> str:
    """The same, in an async handler."""
    return str((await add.aenqueue(n, n)).id)


@app.task(isolation="process")
def succeed_inside(ctx: Context, file: str) -> None:
    """Succeed in a transaction of its own, and raise afterwards."""
    connection = apsw.Connection(file)
    connection.execute("BEGIN IMMEDIATE")
    ctx.succeed_in(connection, "inside")
    connection.execute("COMMIT")
    connection.close()
    message = "after the commit"
    raise ValueError(message)


@app.task(isolation="process")
def without_tenant() -> str:
    """Call Fairlane from a thread that belongs to no tenant."""
    found: list[str] = []

    def call() -> None:
        try:
            add.enqueue(1, 1)
        except Exception as error:  # noqa: BLE001 (the test asks which)
            found.append(type(error).__name__)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found[0]


# ── handlers that end otherwise ──────────────────────────────────────────────


@app.task(isolation="process", max_attempts=1)
def fail() -> NoReturn:
    """Raise."""
    message = "it went wrong"
    raise ValueError(message)


def in_an_hour(error: BaseException, failures: int) -> float | None:
    """Wait an hour after each failure; refuse to say anything of a KeyError."""
    if isinstance(error, KeyError):
        message = f"no idea in process {os.getpid()}"
        raise RuntimeError(message)  # noqa: TRY004 (it is about that)
    return 3_600.0 * failures


@app.task(isolation="process", retry_delay=in_an_hour, retry=Backoff.delays(60))
def fail_for_hours(*, is_known: bool) -> NoReturn:
    """Raise what the function in the child knows, or does not."""
    raise ValueError if is_known else KeyError


@app.task(isolation="process", classify=lambda _: ErrorClass.NON_RETRYABLE)
def fail_for_good() -> NoReturn:
    """Raise what the classifier, which lives in the child, calls final."""
    message = "no use"
    raise ValueError(message)


@app.task(isolation="process")
def snooze() -> None:
    """Come back later."""
    raise Snooze(3_600, "not now")


@app.task(isolation="process")
def retry_later() -> None:
    """Try again later."""
    raise Retry("busy", after=3_600)


class Mute(Exception):  # noqa: N818 (its name is what is left of it)
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        """Raise."""
        raise RuntimeError


@app.task(isolation="process", max_attempts=1)
def mute() -> NoReturn:
    """Raise an error whose text cannot be had."""
    raise Mute


@app.task(isolation="process", on_bad_result="dead")
def unencodable() -> object:
    """Return what cannot be stored."""
    return object()


@app.task(isolation="process", max_attempts=1)
def recurse(n: int = 0) -> int:
    """Call itself without end."""
    return recurse.func(n + 1) + 1  # type: ignore[no-any-return]


@app.task(isolation="process", max_attempts=1)
async def system_exit() -> None:
    """Ask the interpreter to exit."""
    raise SystemExit(3)


# ── handlers that harm their process ─────────────────────────────────────────


@app.task(isolation="process")
def exit_now(code: int = 7) -> None:
    """End the process at once."""
    os._exit(code)


@app.task(isolation="process", at_most_once=True)
def exit_once() -> None:
    """End the process at once, in a task that must not run twice."""
    os._exit(7)


@app.task
def exit_here() -> None:
    """End the process at once, in a task that asks for no child."""
    os._exit(7)


@app.task(isolation="process")
def segfault() -> None:
    """Read memory that does not exist."""
    ctypes.string_at(0)


@app.task(isolation="process")
def close_all() -> None:
    """Close every descriptor."""
    os.closerange(0, 4_096)


@app.task(isolation="process")
def write_garbage() -> None:
    """Write to every descriptor what is no frame."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue


@app.task(isolation="process")
def close_output() -> int:
    """Close standard output."""
    os.close(1)
    return os.getpid()


@app.task(isolation="process")
def change_directory(place: str) -> int:
    """Go elsewhere and stay."""
    os.chdir(place)
    return os.getpid()


@app.task(isolation="process")
def where() -> tuple[int, str]:
    """Return the process and its working directory."""
    return os.getpid(), str(Path.cwd())


@app.task(isolation="process")
def set_signals() -> int:
    """Ignore the signals that stop a handler, and set an alarm."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return os.getpid()


@app.task(isolation="process")
def set_alarm() -> int:
    """Set an alarm that would kill whoever runs in a moment."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return os.getpid()


@app.task(isolation="process")
def linger(seconds: float) -> int:
    """Stay a while."""
    time.sleep(seconds)
    return os.getpid()


@app.task(isolation="process")
def fork_and_return() -> int:
    """Fork, and return in both processes."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return os.getpid()


@app.task(isolation="process")
def leave_thread() -> int:
    """Leave a thread behind."""
    threading.Thread(target=time.sleep, args=(600,), daemon=True, name="left").start()
    return os.getpid()


@app.task(isolation="process")
def leave_process(*, detached: bool) -> tuple[int, int]:
    """Leave a process behind, in its own session if detached."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=detached)  # noqa: S607 (a test)
    return os.getpid(), process.pid


@app.task(isolation="process", timeout=1)
def hang_with_process(file: str) -> None:
    """Start a process, and ignore every signal."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inner = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", inner])  # noqa: S603 (a test)
    note(file, os.getpid(), process.pid)
    while True:
        time.sleep(1)


@app.task(isolation="process")
def spin(file: str) -> None:
    """Hold the interpreter: no signal handler of Python runs."""
    note(file, os.getpid())
    ctypes.PyDLL(None).usleep(600_000_000)


@app.task(isolation="process")
def exhaust_descriptors() -> None:
    """Open files until there are no more."""
    import resource  # noqa: PLC0415 (this handler only)

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    kept = []
    while True:
        kept.append(Path("/dev/null").open())  # noqa: SIM115 (on purpose)


@app.task(isolation="process", max_attempts=1)
def exhaust_memory() -> None:
    """Ask for more memory than the process may have."""
    import resource  # noqa: PLC0415 (this handler only)

    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    bytearray(2**31)


@app.task(isolation="process", max_memory="120MB", max_attempts=1)
def eat_memory(megabytes: int, file: str = "") -> int:
    """Take memory, and stay."""
    if file:
        note(file, os.getpid())
    kept = bytearray(os.urandom(2**20) * megabytes)
    if file:
        time.sleep(600)
    return len(kept)


@app.task(isolation="process", max_memory="200MB", max_attempts=1)
def eat_memory_below(megabytes: int) -> None:
    """Let a process that it starts take memory."""
    inner = f"import os, time; kept = bytearray(os.urandom(2**20) * {megabytes}); time.sleep(600)"
    subprocess.run([sys.executable, "-c", inner], check=True)  # noqa: S603 (a test)


@app.task(isolation="process")
def speak(lines: int = 2) -> None:
    """Write to standard output and error."""
    for number in range(lines):
        print(f"line {number}")
    sys.stderr.write("an error\n")


@app.task(isolation="process")
def flood(megabytes: int) -> None:
    """Write very much to standard output."""
    block = b"x" * 99 + b"\n"
    for _ in range(megabytes):
        os.write(1, block * 10_486)


# ── handlers that are stopped ────────────────────────────────────────────────


@app.task(isolation="process", soft_timeout=1, timeout=60)
def softly() -> str:
    """Wait until the soft timeout is raised."""
    try:
        time.sleep(60)
    except SoftTimeout:
        return "softly"
    return "never"


@app.task(isolation="process", soft_timeout=1, timeout=60)
async def asoftly() -> str:
    """The same, async."""
    try:
        await asyncio.sleep(60)
    except SoftTimeout:
        return "softly"
    return "never"


@app.task(isolation="process")
def wait_for_cancel(file: str) -> None:
    """Wait until it is cancelled."""
    note(file, os.getpid())
    try:
        time.sleep(60)
    finally:
        note(file, "left")


@app.task(isolation="process")
async def await_cancel(file: str) -> None:
    """The same, async."""
    note(file, os.getpid())
    try:
        await asyncio.sleep(60)
    finally:
        note(file, "left")


@app.task(isolation="process")
def finish_anyway(ctx: Context, file: str) -> bool:
    """Return normally although it was cancelled."""
    note(file, os.getpid())
    try:
        time.sleep(60)
    except asyncio.CancelledError:
        return ctx.cancelled
    return False


@app.task(isolation="process", timeout=1, max_attempts=1)
def overrun() -> None:
    """Run longer than allowed."""
    time.sleep(60)


@app.task(isolation="process", on_shutdown="requeue")
def requeued(file: str) -> None:
    """Wait until the worker shuts down."""
    note(file, os.getpid())
    time.sleep(60)


@app.task
def brief(file: str) -> None:
    """Say where it runs."""
    note(file, os.getpid())
