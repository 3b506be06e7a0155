"""Read the counters of the store: jobs by home, tenant queues, gates and keys."""

from __future__ import annotations

from fairlane.model.lifecycle.states import WAITING, Home, State, home
from fairlane.store.contract.request import CounterPosition, Request, check_page, from_cursor, to_cursor
from fairlane.store.contract.upkeep import Census, CensusRequest, GateCounter, TenantCounters
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import TenantCounts, queue_names, read_tenant_counts, tenant_counts_in


async def census(client: RedisClient, request: CensusRequest) -> Census:
    """Return the counters; the totals come with the first page only."""
    check_page(request.limit)
    start = (
        CounterPosition("", "") if request.cursor is None else from_cursor(request.cursor, CounterPosition)
    )
    tenant = request.scope.tenant
    counters, cursor = await _tenant_counters(client, tenant, start, request.limit)
    if request.cursor is not None:
        return Census(homes={}, tenants=counters, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor)
    jobs, finished, keys, dedup, gates = await client.run("upkeep/totals", tenant or "")
    by_home = dict.fromkeys(Home, 0)
    if tenant is None:
        finished = dict(zip(State, finished, strict=True))
        by_home[Home.HOT] = jobs - sum(finished.values())
    else:
        gates, finished = [], await _counts_of(client, tenant)
    for state, number in finished.items():
        by_home[home(state)] += number
    used = zip(gates[::2], gates[1::2], strict=True)
    return Census(
        homes={one: number for one, number in by_home.items() if number},
        tenants=counters,
        gates=tuple(sorted(GateCounter(gate.decode(), int(number)) for gate, number in used)),
        idempotency_keys=keys,
        dedup_keys=dedup,
        cursor=cursor,
    )


async def gates(client: RedisClient, request: Request) -> tuple[GateCounter, ...]:
    """Return the used slots of all gates; a tenant sees none."""
    if request.scope.tenant is not None:
        return ()
    used = await client.ask("HGETALL", client.keys("gate_slots"))
    counters = (GateCounter(gate.decode(), int(number)) for gate, number in used.items() if int(number))
    return tuple(sorted(counters))


async def _counts_of(client: RedisClient, tenant: str) -> dict[State, int]:
    rows, _ = await read_tenant_counts(client, tenant=tenant)
    return {state: sum(row.by_state[state] for row in rows) for state in State}


async def _tenant_counters(
    client: RedisClient, tenant: str | None, start: CounterPosition, limit: int
) -> tuple[tuple[TenantCounters, ...], str | None]:
    found: list[TenantCounters] = []
    for queue in await queue_names(client):
        if queue < start.queue:
            continue
        after = start.tenant if queue == start.queue else ""
        async for row in tenant_counts_in(client, queue, after, tenant):
            one = _counters(row)
            if not one.waiting and not one.running:
                continue
            if len(found) == limit:
                return tuple(found), to_cursor(CounterPosition(found[-1].queue, found[-1].tenant))
            found.append(one)
    return tuple(found), None


def _counters(row: TenantCounts) -> TenantCounters:
    waiting = sum(row.by_state[state] for state in WAITING)
    return TenantCounters(row.queue, row.tenant, waiting, row.by_state[State.RUNNING])
