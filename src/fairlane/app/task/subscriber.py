"""Tasks that subscribe to events: what they may declare, and the job of one event (S77). Asks no store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, NoReturn, TypedDict
from uuid import UUID

import msgspec

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.task.handler import Handler
from fairlane.model.checking import shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import Classifier
from fairlane.model.instants import Duration, to_datetime
from fairlane.model.job import NewJob, OnStuck
from fairlane.model.journal.entries import Entry
from fairlane.model.journal.kinds import EventKind, addressee_of, severity_of
from fairlane.model.payload.encoding import PayloadRules, encode_arguments, fingerprint
from fairlane.model.policy.declared import Breaker, Budget, Gate
from fairlane.model.policy.limits import Rate
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.retry.own_delay import RetryDelay
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.registry import TaskRecord

_RULES: Final = PayloadRules(max_size=16 * 2**20)
"""No event may stop those behind it; that of a newer version may say more than ours."""

KINDS: Final = tuple(kind.value for kind in EventKind)


class EventData(TypedDict):
    """An event as a subscriber gets it.

    `tenant` is None if it concerns all tenants. `count` says how often it happened. `body` depends on the
    kind.
    """

    number: int
    at: datetime
    kind: str
    severity: str
    addressee: str
    tenant: str | None
    subject: str
    count: int
    body: dict[str, Any]


class SubscriberOptions(TypedDict, total=False):
    """The options of `on_event`: those of `task` that a subscriber may have."""

    name: str
    aliases: Sequence[str]
    version: int
    queue: str
    priority: int
    timeout: Duration | None
    soft_timeout: Duration
    stuck_after: Duration
    on_stuck: OnStuck
    max_attempts: int
    retry: RetryPolicy
    retry_delay: RetryDelay
    classify: Classifier
    gate: str | Gate
    breaker: str | Breaker
    budget: str | Budget
    rate: Rate
    at_most_once: bool
    keep_result: bool
    on_bad_result: Literal["drop", "dead"]
    on_shutdown: Literal["finish", "requeue"]
    isolation: Literal["auto", "process"]
    max_memory: int | str
    sensitive: Sequence[str]


def checked_kinds(kinds: Sequence[object]) -> tuple[str, ...]:
    """Return the kinds of a subscription, each once; `ConfigError` names one that there is not."""
    if not kinds:
        message = "it names no kind of event; write @app.on_event('dlq_alert'), or several kinds"
        raise ConfigError(message, key="on_event", allowed=", ".join(KINDS))
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KINDS:
            meant = did_you_mean(kind, list(KINDS)) if isinstance(kind, str) else ""
            message = f"{shown(kind)} is not a kind of event{meant}"
            raise ConfigError(message, key="on_event", allowed=", ".join(KINDS))
    return tuple(dict.fromkeys(str(kind) for kind in kinds))


def check_subscriber(handler: Handler) -> None:
    """Refuse a handler that does not take one event, with or without the context before it."""
    parameters = len(handler.signature.parameters)
    if parameters != 1:
        _refuse(
            handler.name, f"it subscribes to events and takes {parameters} arguments; take the event only"
        )


def event_parameter(record: TaskRecord) -> str | None:
    """Return the name of the argument that takes the event; None if a task takes nothing.

    >>> event_parameter(TaskRecord(name="page", queue="ops", schema=b'{"properties":{"event":{}}}'))
    'event'
    """
    return next(iter(msgspec.json.decode(record.schema).get("properties", ())), None)


def event_job(id: UUID, event: Entry, record: TaskRecord) -> NewJob:
    """Return the job of one event and subscriber. However often it is enqueued, it is stored once.

    It has the values that the task was published with: workers of any application may run it.
    """
    encoded = encode_arguments({str(event_parameter(record)): event_data(event)}, rules=_RULES)
    return NewJob(
        id=id,
        tenant=SYSTEM,
        queue=record.queue,
        task=record.name,
        payload=encoded.data,
        checksum=encoded.checksum,
        version=record.version,
        priority=record.priority,
        idempotency_key=f"event:{record.name}:{event.number}",
        # By number alone: two versions may encode the same event differently.
        fingerprint=fingerprint(record.name, {"event": event.number}),
        dedup_until=record.dedup_until,
        max_attempts=record.max_attempts,
        timeout=record.timeout,
        at_most_once=record.at_most_once,
        stuck_after=record.stuck_after,
        on_stuck=record.on_stuck,
    )


def event_data(event: Entry) -> EventData:
    """Return an event as its subscribers get it."""
    entry = event.entry
    return EventData(
        number=event.number,
        at=to_datetime(event.at),
        kind=entry.kind,
        severity=severity_of(entry.kind),
        addressee=addressee_of(entry.kind),
        tenant=entry.tenant,
        subject=entry.subject,
        count=entry.count,
        body=msgspec.json.decode(entry.body),
    )


def _refuse(name: str, message: str) -> NoReturn:
    raise ConfigError(message, key=f"task {name}")
