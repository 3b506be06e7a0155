"""Time the parts of a worker from inside its process: each thread's own processor time, by part.

A part's time is its own: what it calls that is a part itself is not in it. What no part accounts for is the
rest of its thread.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import apsw

from fairlane.store.sqlite import connection
from fairlane.store.sqlite import threads as writer
from fairlane.store.sqlite.claims import facet as claims
from fairlane.store.sqlite.claims import settle as settling
from fairlane.worker import dispatch, execute, lane_state, settle
from fairlane.worker.attempts import run_handler

REST: Final = {
    "MainThread": "loop: event loop, tasks, the rest",
    "fairlane-portal": "renewing thread: hand-overs, heartbeats, duties",
    "fairlane-sqlite-writer": "store: writer's own loop",
    "fairlane-sqlite-reader": "store: reading thread",
    "fairlane-handler": "handlers' threads",
    "asyncio": "store: closed",
}
START: Final = "start and end of the process"

_PARTS: Final[tuple[tuple[Any, str, str], ...]] = (
    (lane_state.LaneState, "queue_requests", "loop: what to ask for"),
    (lane_state.LaneState, "take", "loop: claims counted"),
    (dispatch.Dispatcher, "hold", "renewing thread: claims held"),
    (execute, "read_arguments", "loop: arguments decoded"),
    (execute.Executor, "_launch", "loop: handler started"),
    (run_handler.HandlerThreads, "_collect", "loop: ends of plain handlers collected"),
    (execute.Executor, "ended", "loop: outcome read"),
    (execute, "settlement_of", "loop: outcome judged"),
    (execute.Executor, "settle", "loop: settlement queued"),
    (settle.Settler, "answered", "loop: settlements heard, slots freed"),
    (claims, "claim", "store: claim, Python"),
    (settling, "claim", "store: claim, Python"),
    (claims, "settle", "store: settle, Python"),
    (writer, "_answer_all", "store: answers handed over"),
)
_SQL: Final = {
    "store: claim, Python": "store: claim, SQLite",
    "store: settle, Python": "store: settle, SQLite",
}


class Meter:
    """Counts from `begin` to `end`."""

    def __init__(self) -> None:
        """Know no thread yet."""
        self._spent: list[defaultdict[str, float]] = []
        self._here = threading.local()
        self._ended: defaultdict[str, float] = defaultdict(float)
        self._began = self._main = 0.0

    def install(self) -> None:
        """Put a timer around each part."""
        for home, name, part in _PARTS:
            setattr(home, name, self._timed(part, getattr(home, name)))
        connection.open_file = self._open
        meter, live = self, threading.Thread.run

        def run_and_count(thread: threading.Thread) -> None:
            try:
                live(thread)
            finally:
                meter._rest(thread.name)

        threading.Thread.run = run_and_count  # type: ignore[method-assign,assignment]

    def begin(self) -> None:
        """Count from now on."""
        self._began = time.process_time()
        self._main = time.thread_time()

    def end(self) -> dict[str, float]:
        """Return the seconds by part; all of them are the process's."""
        total = time.process_time() - self._began
        if not self._spent:
            return {"all": total}
        self._rest("MainThread", since=self._main)
        found: defaultdict[str, float] = defaultdict(float)
        for spent in (*self._spent, self._ended):
            for part, seconds in spent.items():
                found[part] += seconds
        found[START] += max(0.0, total - sum(found.values()))
        return found

    def _own(self) -> tuple[list[tuple[str, float]], defaultdict[str, float]]:
        try:
            return self._here.stack, self._here.spent
        except AttributeError:
            self._here.stack = []
            self._here.spent = defaultdict(float)
            self._spent.append(self._here.spent)
            return self._here.stack, self._here.spent

    def _enter(self, part: str) -> None:
        stack, spent = self._own()
        now = time.thread_time()
        if stack:
            above, since = stack[-1]
            spent[above] += now - since
        stack.append((part, now))

    def _leave(self) -> None:
        stack, spent = self._own()
        now = time.thread_time()
        part, since = stack.pop()
        spent[part] += now - since
        if stack:
            stack[-1] = (stack[-1][0], now)

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            self._enter(part)
            try:
                return function(*args, **named)
            finally:
                self._leave()

        return timed

    def _rest(self, thread: str, since: float = 0.0) -> None:
        """Note what a thread has spent beside its parts, at its end."""
        _, spent = self._own()
        rest = time.thread_time() - since - sum(spent.values())
        self._ended[next((name for key, name in REST.items() if thread.startswith(key)), thread)] += rest

    def _open(self, path: Path) -> apsw.Connection:
        meter = self

        class Timed(apsw.Connection):
            """Counts every statement with the verb that it is part of."""

            def execute(self, statements: str, *values: Any, **options: Any) -> apsw.Cursor:
                meter._enter(meter._statement(statements))
                try:
                    return super().execute(statements, *values, **options)
                finally:
                    meter._leave()

            def executemany(self, statements: str, *values: Any, **options: Any) -> apsw.Cursor:
                meter._enter(meter._statement(statements))
                try:
                    return super().executemany(statements, *values, **options)
                finally:
                    meter._leave()

        return Timed(str(path))

    def _statement(self, text: str) -> str:
        stack, _ = self._own()
        if text == "COMMIT":
            return "store: commit"
        return _SQL.get(stack[-1][0], "store: other statements") if stack else "store: other statements"
