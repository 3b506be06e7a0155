"""The registry facet: workers, their tasks and heartbeats, the lead, wake-ups."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.outage import GAP_MARGIN
from fairlane.store.contract.registry import (
    DutiesReply,
    DutiesRequest,
    ForgetWorkersRequest,
    HeartbeatRequest,
    LeadReply,
    LeadRequest,
    LeaveRequest,
    RegisterRequest,
    StoreStatus,
    TasksRequest,
    TaskView,
    WaitRequest,
    WakeRequest,
    WorkersRequest,
    WorkerState,
    WorkerView,
)
from fairlane.store.contract.request import Request
from fairlane.store.contract.task_versions import list_tasks, task_key
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import pack
from fairlane.store.redis.wake import Wake
from fairlane.store.registry_records import pack_record, pack_reports, read_reports, read_task, read_worker

_NOT_KNOWN: Final = -1
"""In place of a number that the worker does not report."""


class _Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """What the hash `heartbeats` has of a worker; of an older version without what it uses."""

    state: WorkerState
    started_at: Instant
    beat_at: Instant
    running: int
    settled: int
    failed: int
    memory: int = _NOT_KNOWN
    cpu: float = _NOT_KNOWN


_read_heartbeat: Final = msgspec.msgpack.Decoder(_Heartbeat).decode


class RedisRegistry:
    """Who is there."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._wake = Wake(client)

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Do nothing: the pools have more connections than a worker needs."""

    async def register(self, request: RegisterRequest) -> None:
        record = request.record
        tasks = [part for task in record.tasks for part in (task_key(task), pack_record(task))]
        await self._client.run(
            "registry/register", record.id, pack_record(record), request.renew_every + GAP_MARGIN, *tasks
        )

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        numbers = (request.running, request.settled, request.failed, request.renew_every + GAP_MARGIN)
        uses = [repr(_NOT_KNOWN if one is None else one) for one in (request.memory, request.cpu)]
        return bool(
            await self._client.run("registry/heartbeat", request.worker, request.state, *numbers, *uses)
        )

    async def leave(self, request: LeaveRequest) -> None:
        await self._client.run("registry/leave", request.worker)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        now, views = await read_workers(self._client)
        within = request.seen_within
        return tuple(view for view in views if within is None or now - view.beat_at <= within)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        _, records, seen = await self._client.run("registry/read", NAMES["task_records"], NAMES["tasks_seen"])
        seen_at = dict(zip(seen[::2], map(int, seen[1::2]), strict=True))
        by_key = zip(records[::2], records[1::2], strict=True)
        return list_tasks(((read_task(record), seen_at[key]) for key, record in by_key), request)

    async def clean(self, request: ForgetWorkersRequest) -> tuple[str, ...]:
        silent = await self._client.run("registry/forget_silent", request.silent_for)
        return tuple(sorted(worker.decode() for worker in silent))

    async def lead(self, request: LeadRequest) -> LeadReply:
        reports = b"" if request.reports is None else pack_reports(request.reports)
        values = (request.name, request.worker, request.lease, reports)
        worker, until = await self._client.run("registry/lead", *values)
        return LeadReply(worker.decode(), until)

    async def duties(self, request: DutiesRequest) -> DutiesReply:
        now, worker, until, stored = await self._client.run("registry/duties", request.name)
        leader = LeadReply(worker.decode(), until) if until > now else None
        return DutiesReply(now=now, leader=leader, reports=read_reports(stored or None))

    async def status(self, request: Request) -> StoreStatus:  # noqa: ARG002 (the contract's shape)
        now, meta = await self._client.run("registry/read", NAMES["meta"])
        known = dict(zip(meta[::2], meta[1::2], strict=True))
        beat_at, resumed_at = known.get(b"beat_at"), known.get(b"resumed_at")
        return StoreStatus(
            now, None if beat_at is None else int(beat_at), None if resumed_at is None else int(resumed_at)
        )

    async def wake(self, request: WakeRequest) -> None:
        await self._client.run("jobs/update", pack((request.queues, request.workers)))

    async def wait(self, request: WaitRequest) -> bool:
        return await self._wake.wait(request.worker, request.queues, request.at_most)


async def read_workers(client: RedisClient) -> tuple[Instant, list[WorkerView]]:
    """Return the server's instant and all known workers, by id."""
    now, records, beats = await client.run("registry/read", NAMES["workers"], NAMES["heartbeats"])
    heartbeats = dict(zip(beats[::2], map(_read_heartbeat, beats[1::2]), strict=True))
    views = [
        WorkerView(
            record=read_worker(record),
            state=heartbeats[id].state,
            started_at=heartbeats[id].started_at,
            beat_at=heartbeats[id].beat_at,
            running=heartbeats[id].running,
            settled=heartbeats[id].settled,
            failed=heartbeats[id].failed,
            memory=None if heartbeats[id].memory < 0 else heartbeats[id].memory,
            cpu=None if heartbeats[id].cpu < 0 else heartbeats[id].cpu,
        )
        for id, record in sorted(zip(records[::2], records[1::2], strict=True))
    ]
    return now, views
