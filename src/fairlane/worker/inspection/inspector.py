"""Describe a running worker: what each slot does, its stacks, its memory. Used outside of its loop."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from fairlane.app.admin.worker_status import LaneStatus, SlotStatus, WorkerStatus
from fairlane.model.instants import SECOND
from fairlane.model.payload.sensitive import redact_text
from fairlane.runtime.clock import Clock
from fairlane.runtime.cpu import CpuMeter
from fairlane.runtime.memory import is_memory_known, resident_memory
from fairlane.runtime.stacks import render
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.inspection.memory_snapshot import memory_snapshot
from fairlane.worker.inspection.stacks import worker_stacks
from fairlane.worker.parts import WorkerParts

MAX_DUMP_CHARS: Final = 200_000
"""The longest dump: it must fit into an answer, in whatever characters (S70)."""

LAG_TIMEOUT: Final = 1.0
"""How many seconds the loop has to turn before it counts as blocked."""


class Inspector:
    """Looks at one worker. Its child processes write their stacks themselves, into the worker's log."""

    def __init__(
        self, worker: str, parts: WorkerParts, loop: asyncio.AbstractEventLoop, clock: Clock
    ) -> None:
        self._worker = worker
        self._parts = parts
        self._loop = loop
        self._clock = clock
        self._cpu = CpuMeter()

    def cpu(self) -> float:
        """Return how many processors this process kept busy since this was asked before."""
        return self._cpu.read()

    def status(self, loop_lag: float | None = None, cpu: float | None = None) -> WorkerStatus:
        """Return what the worker does now."""
        parts, running = self._parts, self._parts.attempts.running()
        return WorkerStatus(
            id=self._worker,
            state=parts.shutdown.state_with(len(running)),
            slots=tuple(sorted(map(self._slot, running), key=lambda slot: -slot.seconds)),
            lanes=tuple(
                LaneStatus(
                    name=lane.policy.name,
                    slots=lane.policy.slots,
                    running=sum(one.lane is lane for one in running),
                    waiting=lane.slots.waiting,
                    pending=len(lane.pending),
                )
                for lane in parts.lanes
            ),
            abandoned=parts.executor.abandoned.count,
            loop_lag=loop_lag,
            memory=resident_memory() if is_memory_known() else None,
            settled=parts.settler.settled_count,
            failed=parts.settler.failed_count,
            cpu=cpu,
        )

    def _slot(self, attempt: LiveAttempt) -> SlotStatus:
        job = attempt.claim.job
        seconds = (self._clock.elapsed() - attempt.started_at) / SECOND
        return SlotStatus(
            lane=attempt.lane.policy.name,
            tenant=job.tenant,
            queue=job.queue,
            task=job.task,
            job=str(job.id),
            attempt=job.attempt,
            seconds=round(seconds, 1),
            runs_in=_where(attempt),
            stopping=None if attempt.cause is None else attempt.cause.value,
        )

    async def loop_lag(self) -> float | None:
        """Return how long the worker's loop takes to turn; None if it is blocked. Runs in another loop."""
        here = asyncio.get_running_loop()
        turned = here.create_future()

        def note() -> None:
            if not turned.done():
                turned.set_result(None)

        began_at = time.monotonic()
        try:
            self._loop.call_soon_threadsafe(here.call_soon_threadsafe, note)
            async with asyncio.timeout(LAG_TIMEOUT):
                await turned
        except (RuntimeError, TimeoutError):  # the loop is closed, or blocked
            return None
        return round(time.monotonic() - began_at, 4)

    def dump(self, *, has_memory: bool = False) -> str:
        """Return the slots and all stacks as text, redacted and bounded; with memory, what holds it."""
        try:
            return self._dump(has_memory=has_memory)
        except Exception as error:  # noqa: BLE001 (threads go on meanwhile; whoever asks must live on)
            return f"worker {self._worker}: the dump failed, try again: {type(error).__name__}: {error}\n"

    def _dump(self, *, has_memory: bool) -> str:
        lines = [f"worker {self._worker}"]
        for slot in self.status().slots:
            about = f"tenant {slot.tenant}, job {slot.job}, task {slot.task}, attempt {slot.attempt}"
            lines.append(f"running for {slot.seconds} s in lane {slot.lane} ({slot.runs_in}): {about}")
        lines += self._ask_children()
        lines.append(render(worker_stacks(self._loop, self._parts.attempts.running())))
        if has_memory:
            lines.append(memory_snapshot())
        text = redact_text("\n".join(lines))
        if len(text) > MAX_DUMP_CHARS:
            text = f"{text[:MAX_DUMP_CHARS]}\n… cut: {len(text) - MAX_DUMP_CHARS} more characters\n"
        return text

    def _ask_children(self) -> list[str]:
        """Let child processes write their stacks, and say where these are to be found.

        The worker's loop signals them and reads what they write: nobody else knows which of them still live.
        """
        children = self._parts.executor.children
        pids = children.pids()
        if not pids:
            return []
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(children.dump_stacks)
        named = ", ".join(map(str, sorted(pids)))
        return [
            f"child processes {named}: their stacks follow in the log of this worker, with tenant and job"
        ]


def _where(attempt: LiveAttempt) -> str:
    if attempt.child is not None:
        return "process"
    return "loop" if attempt.declared.handler.is_async else "thread"
