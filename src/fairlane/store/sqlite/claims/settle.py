"""Settle claims: write what attempts came to, and free what they used.

Most settlements are plain successes, which `settle_fast_path` writes in bulk at a third of the cost. All
others take the general path, one by one. Both write the same rows.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord, Settlement
from fairlane.model.lifecycle.record_changes import settled
from fairlane.model.lifecycle.states import Event, State, is_finished
from fairlane.model.retry.decision import reconcile
from fairlane.model.scheduling.fairness import correction, refund
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import SettledJob, SettleReply, SettleRequest
from fairlane.store.sqlite.claims.claim import claim
from fairlane.store.sqlite.claims.parking import hint_at_gate, unpark_after_running_limit
from fairlane.store.sqlite.claims.spending import report_spend
from fairlane.store.sqlite.query import all_rows, json_array
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import SuccessRows
from fairlane.store.sqlite.tables.job_tables import LiveJob, find_live, move, rewrite_metadata
from fairlane.store.sqlite.tables.tenant_queue_rows import Strand
from fairlane.store.sqlite.transaction import RecentClaim, Transaction

_SQL = load("claims")
_JOBS = load("job_tables")


def settle(tx: Transaction, request: SettleRequest) -> SettleReply:
    """Settle the claims that still stand, name those that do not; claim again in the same commit if asked."""
    done, stale = [], []
    report_spend(tx, request.scope, request.settlements, is_over=True)
    plain = settle_fast_path(tx, request)
    seen: set[int] = set()  # ids as integers: `UUID` computes its hash in Python
    for asked in request.settlements:
        number = asked.id.int
        if number in plain:
            plain.remove(number)
            seen.add(number)
            done.append(SettledJob(asked.id, State.SUCCEEDED))
            continue
        if number in seen:
            tx.flush()  # the same job twice in a request: the second must see what the first did
        seen.add(number)
        live = running_claim(tx, request.scope, request.worker, asked.id, asked.fence)
        if live is None:
            stale.append(asked.id)
            continue
        settlement = reconcile(live.job, asked, tx.now)
        if live.charged is not None and settlement.outcome in {"succeeded", "failed"}:
            took = tx.now - (live.job.started_at or tx.now)
            tx.counters.estimates.learn((live.job.queue, live.job.task), took)
        after = settled(live.job, settlement, tx.now, request.attempts_kept)
        if settlement.metadata is not None:
            rewrite_metadata(tx, live.seq, settlement.metadata)
        end_claim(tx, live, after, is_unstarted=settlement.is_unstarted)
        done.append(SettledJob(after.id, after.state))
    if request.claim is not None:
        tx.flush()
    claimed = None if request.claim is None else claim(tx, request.claim)
    return SettleReply(tuple(done), tuple(stale), claimed)


def running_claim(tx: Transaction, scope: Scope, worker: str, id: UUID, fence: int) -> LiveJob | None:
    """Return a job if this worker still has the claim with this fence; else None."""
    live = find_live(tx, id)
    if live is None or not scope.covers(live.job.tenant):
        return None
    job = live.job
    return live if (job.state, job.fence, job.worker) == (State.RUNNING, fence, worker) else None


def end_claim(tx: Transaction, live: LiveJob, after: JobRecord, *, is_unstarted: bool = False) -> JobRecord:
    """End a claim: charge its time, free its gate slot, unpark its tenant at a running limit."""
    if is_unstarted:
        give_back_charge(tx, live)
    else:
        charge_time(tx, live, is_final=True)
    tenant_queue = tx.tenant_queues.strand_by_id(live.strand).tenant_queue
    move(tx, live, after)
    unpark_after_running_limit(tx, tenant_queue)
    if live.gate is not None:
        tx.counters.gates.set(live.gate, tx.counters.gates[live.gate].value - 1)
        hint_at_gate(tx, live.gate)
    if not is_finished(after.state):
        tx.hint(after.queue)
    return after


def charge_time(tx: Transaction, live: LiveJob, *, is_final: bool) -> None:
    """Charge the tenant for the time that an attempt really took.

    The claim charged an estimate. A renewal charges only what exceeds it; the end also returns what was too
    much.
    """
    seen = tx.now - (live.job.started_at or tx.now)
    if live.charged is None or (not is_final and seen <= live.charged):
        return
    tenant_queue = tx.tenant_queues.strand_by_id(live.strand).tenant_queue
    stride = tx.policies.stride(tenant_queue.tenant, tx.now)
    tx.tenant_queues.charge(tenant_queue, correction(stride, live.charged, seen))
    live.charged = seen


def give_back_charge(tx: Transaction, live: LiveJob) -> None:
    """Give a tenant back what a claim has charged for a job that did not start (S68)."""
    tenant_queue = tx.tenant_queues.strand_by_id(live.strand).tenant_queue
    stride = tx.policies.stride(tenant_queue.tenant, tx.now)
    vt = refund(tenant_queue.vt, stride, SECOND if live.charged is None else live.charged)
    tx.tenant_queues.charge(tenant_queue, vt - tenant_queue.vt)


# ── the fast path ─────────────────────────────────────────────────────────────


def settle_fast_path(tx: Transaction, request: SettleRequest) -> set[int]:
    """Settle the plain successes of a request in bulk; return their ids as integers.

    A success is plain if this writer made the claim itself (`Transaction.recent_claims`) and there is no key
    to release, no gate to leave, no time to charge and no metadata to write. The job's record is taken from
    the claim, because a running job cannot be edited. Only whether the claim still stands is read from the
    file.
    """
    plain: dict[int, tuple[RecentClaim, Settlement]] = {}
    for asked in request.settlements:
        recent = tx.recent_claims.pop(asked.id.int, None) if asked.event is Event.SUCCEED else None
        if recent is None or recent.job.fence != asked.fence or asked.metadata is not None:
            continue
        if request.scope.covers(recent.job.tenant):
            plain[recent.seq] = (recent, asked)
    if not plain:
        return set()
    found = all_rows(tx.db, _SQL.still_running, (json_array(plain), request.worker))
    still_running = [plain[seq] for seq, fence in found if plain[seq][1].fence == fence]
    rows = SuccessRows(tx.now, request.attempts_kept)
    tx.write(_JOBS.delete_all_live, json_array(recent.seq for recent, _ in still_running))
    tx.write_all(
        _JOBS.insert_history, [rows.row(recent.seq, recent.job, asked) for recent, asked in still_running]
    )
    jobs = Counter([recent.strand for recent, _ in still_running])
    for strand in tx.tenant_queues.strands_by_id(jobs):
        _count_succeeded(tx, strand, jobs[strand.id])
    return {asked.id.int for _, asked in still_running}


def _count_succeeded(tx: Transaction, strand: Strand, jobs: int) -> None:
    """Count `jobs` jobs of a strand as succeeded and no longer running."""
    tenant_queue = strand.tenant_queue
    strand.jobs -= jobs
    tenant_queue.running -= jobs
    strand.is_changed = tenant_queue.is_changed = True
    tx.tally[tenant_queue.tenant, tenant_queue.queue, State.SUCCEEDED] += jobs
    unpark_after_running_limit(tx, tenant_queue)
