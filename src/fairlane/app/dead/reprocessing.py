"""Build the jobs that run in place of dead ones, and say why one was refused (S75). Sends nothing."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UnsetType

from fairlane.app.client import Client
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.enqueue.copies import copy_of, what_is_missing
from fairlane.app.enqueue.merged_arguments import merge_arguments
from fairlane.app.enqueue.refusals import refusal_error
from fairlane.model.errors import DuplicateJob, FairlaneError, InvalidJob, WrongState, invalid_job
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.names import check_name, name_hint
from fairlane.model.payload.encoding import Undecodable, stored_fingerprint
from fairlane.model.reprocess_key import reprocess_key
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadLetter, Reprocessing, ReprocessReply
from fairlane.store.contract.registry import TasksRequest

_ENQUEUE: Final = "enqueue a new job"


def new_run(client: Client, letter: DeadLetter, to_queue: str | None) -> Reprocessing:
    """Return the new job for a dead letter, with the stored arguments; `WrongState` if it has none."""
    record = letter.job
    what = what_is_missing(record)
    if what is None:
        try:
            return Reprocessing(record.id, record.checksum, _new_job(client, record, to_queue))
        except Undecodable as error:
            what = f"its arguments cannot be read: {error}"
    raise WrongState(record.id, record.state.value, what, _ENQUEUE)


def _new_job(client: Client, record: JobRecord, to_queue: str | None) -> NewJob:
    job = copy_of(record, client.next_id())
    key = reprocess_key(client.settings.dead_letters.key, record.idempotency_key, job.id, client.clock.wall())
    return msgspec.structs.replace(
        job,
        queue=to_queue or record.queue,
        idempotency_key=key,
        fingerprint=b"" if key is None else stored_fingerprint(job.task, job.payload),
    )


async def with_arguments(
    client: Client, letter: DeadLetter, item: Reprocessing, arguments: object
) -> Reprocessing:
    """Return the new job with these arguments over the stored ones; `InvalidJob` lists what does not fit."""
    problems, record = ProblemList(0), letter.job
    merged = await merge_arguments(client, problems, record, arguments)
    if problems.found:
        raise _not_run(record, problems)
    given: dict[str, Any] = {
        name: value for name, value in merged._asdict().items() if not isinstance(value, UnsetType)
    }
    job = msgspec.structs.replace(item.job, **given)
    if job.idempotency_key is not None:
        job = msgspec.structs.replace(job, fingerprint=stored_fingerprint(job.task, job.payload))
    return msgspec.structs.replace(item, job=job)


def _not_run(record: JobRecord, problems: ProblemList) -> InvalidJob:
    lines = "\n".join(f"  {problem.text}" for problem in problems.found)
    text = f"dead letter {record.id} was not run again, {len(problems.found)} problem(s):\n{lines}"
    return type(invalid_job(problems.found))(problems.found, text)


async def queue_to_use(client: Client, queue: object, scope: Scope) -> str | None:
    """Return another queue for new jobs; `InvalidJob` if it is not declared here and no task lives there."""
    if queue is None:
        return None
    problems, settings = ProblemList(0), client.settings
    problems.take(check_name(0, "to_queue", queue, name_hint(queue)))
    if not problems.found and settings.fixed_queues:
        hint = "leave it out, or set fixed_queues to false"
        problems.add("to_queue", "is given, but tasks stay in their home queues", hint, "fixed_queue")
    if not problems.found and queue not in settings.queues:
        known = set(settings.queues)
        if settings.has_open_queues:
            published = await client.store.registry.tasks(TasksRequest(scope=scope))
            known |= {view.record.queue for view in published} | {task.queue for task in client.registry}
        if queue not in known:
            hint = f"declare it, or use one of: {', '.join(sorted(known))}"
            problems.add("to_queue", f"{queue} is not declared", hint, "unknown_queue")
    if problems.found:
        raise InvalidJob(problems.found, "\n".join(problem.text for problem in problems.found))
    return str(queue)


def reprocess_error(reply: ReprocessReply, item: Reprocessing) -> FairlaneError:
    """Return the error for a dead letter that was not run again."""
    match reply.answer:
        case "changed":
            what = "its arguments have changed meanwhile: its tenant was forgotten"
            return WrongState(item.id, "dead", what, _ENQUEUE)
        case "refused" if reply.refusal is not None:
            return _refused(reply.refusal, item)
        case _:
            return stands(item.id, reply.review or "gone")


def stands(id: UUID, review: str) -> WrongState:
    """Return the error for a dead letter about which nothing else may be decided."""
    what = f"what was decided about a {review} dead letter stands"
    return WrongState(id, review, what, "add a note, or enqueue a new job")


def _refused(refusal: Refusal, item: Reprocessing) -> FairlaneError:
    error = refusal_error([msgspec.structs.replace(refusal, index=0)], [item.job])
    if refusal.kind is RefusalKind.DUPLICATE and isinstance(error, DuplicateJob):
        key = item.job.idempotency_key or item.job.id
        holder = f"job {refusal.existing} holds its de-duplication key, or has the idempotency key {key}"
        error.args = (f"dead letter {item.id} was not run again: {holder}",)
    return error
