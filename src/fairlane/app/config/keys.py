"""Every key of the configuration: its kind, its default, its meaning. The reference page is made of this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from fairlane.app.config.kinds import (
    AMOUNT,
    ANYTHING,
    FLAG,
    NAME,
    SECRET,
    TEXT,
    URL,
    Kind,
    count,
    duration,
    list_of,
    number,
    one_of,
    or_none,
    size,
)
from fairlane.app.config.policy_kinds import LABELS, QUEUES, RATE, RETRY, WEIGHT
from fairlane.model.layers import EVERY
from fairlane.model.names import name_hint, task_hint, tenant_hint
from fairlane.model.priority import HIGHEST, LOWEST


class Key(msgspec.Struct, frozen=True):
    """One key: its kind, its default as a file would spell it, what it means.

    `has_effect` is False where the feature does not exist in this version: the value is checked, and
    start-up says that nothing comes of it.
    """

    kind: Kind
    default: str
    about: str
    has_effect: bool = True


class Named(msgspec.Struct, frozen=True):
    """Entries under names of the user's own choice; `hint` says what is wrong with a name."""

    what: str
    hint: Callable[[object], str | None]
    entry: Node


Node: TypeAlias = "Key | Named | Mapping[str, Node]"


def _or_every(hint: Callable[[object], str | None]) -> Callable[[object], str | None]:
    return lambda name: None if name == EVERY else hint(name)


def _planned(kind: Kind, about: str, default: str = "") -> Key:
    return Key(kind, default, about, has_effect=False)


_TIMEOUT: Final = or_none(duration(1, 86_400))

_LIMITS: Final[Mapping[str, Node]] = {
    "waiting": Key(or_none(count(0)), "none", "delayed and ready jobs of one tenant in the queue (S16)"),
    "on_full": Key(one_of("warn", "reject"), '"warn"', "what happens to a job above `waiting` (S17)"),
    "running": Key(or_none(count(0)), "none", "jobs of one tenant that run at once (S45)"),
    "rate": Key(RATE, "none", "starts of one tenant (S44)"),
}

_QUEUE: Final[Mapping[str, Node]] = {
    "timeout": Key(_TIMEOUT, '"30m"', "how long an attempt may take (S31)"),
    "max_attempts": Key(count(1, 1_000), "5", "attempts, the first run included (S25)"),
    "retry": Key(RETRY, '{ kind = "exponential", base = 2, factor = 2, cap = 300, floor = 0, jitter = 0.2 }',
                 "waits between attempts (S26), one for all or one for each error class"),
    "limits": _LIMITS,
    "max_waiting": Key(or_none(count(0)), "none", "delayed and ready jobs of all tenants together (S18)"),
    "rate": Key(RATE, "none", "starts of all tenants together (S44)"),
    "cost": Key(one_of("jobs", "seconds"), '"jobs"', "what fairness counts (S41)"),
    "sla": _planned(duration(0.001), "95 of 100 jobs start within this time of being due"),
    "escalate": _planned(NAME, "which of `[escalations]` hears of it"),
}  # fmt: skip

TREE: Final[Mapping[str, Node]] = {
    "app": {
        "import": Key(TEXT, "none", "the application that commands run, as `module:name`"),
        "url": Key(URL, '"sqlite:///fairlane.db"', "the store; one given in code is never replaced"),
        "namespace": _planned(NAME, "the installation inside the store; one given in code is never replaced"),
        "tenancy": Key(one_of("open", "required", "declared"), '"open"', "who may have jobs (S7)"),
        "fixed_queues": Key(FLAG, "false", "a task never leaves its home queue (S11)"),
        "priority": Key(
            one_of("higher_first", "lower_first"), '"higher_first"', "which numbers go first (S19)"
        ),
        "priority_default": Key(count(LOWEST, HIGHEST), "0", "the priority of a task that says none"),
    },
    "defaults": _QUEUE,
    "queues": Named("queue", name_hint, {**_QUEUE, "color": _planned(TEXT, "how the queue is shown")}),
    "lanes": Named("lane", name_hint, {
        "slots": Key(count(1), "required", "jobs that run at once (S47)"),
        "queues": Key(QUEUES, "required", "the queues it serves, with their shares"),
        "order": Key(one_of("weighted", "strict"), '"weighted"', "whose turn it is between its queues (S49)"),
        "headroom": Key(count(0), "slots / 8, at least 1; 0 of 1",
                        "slots kept for tenants with nothing running (S48); 0 keeps none"),
        "poll": _planned(duration(0.01), "how long a lost wake-up may go unnoticed"),
    }),
    "gates": Named("gate", name_hint, {
        "limit": Key(or_none(count(0)), "none", "jobs that run at once over all workers (S43)"),
        "rate": Key(RATE, "none", "starts over all workers"),
    }),
    "tasks": Named("task", task_hint, {
        "timeout": Key(_TIMEOUT, "the code's", "how long an attempt may take (S31)"),
        "soft_timeout": Key(_TIMEOUT, "the code's", "when a handler is told to come to an end"),
        "max_attempts": Key(count(1, 1_000), "the code's", "attempts, the first run included (S25)"),
        "retry": Key(RETRY, "the code's", "waits between attempts (S26)"),
        "gate": Key(NAME, "the code's", "which of `[gates]` its jobs pass (S43)"),
        "rate": Key(RATE, "the code's", "starts of all tenants together (S44)"),
        "on_bad_result": Key(
            one_of("drop", "dead"), "the code's", "a result that cannot be kept: drop it, or dead (S34)"
        ),
        "isolation": _planned(one_of("auto", "process"), "where its handler runs"),
        "max_memory": _planned(size(), "memory of its own process"),
        "breaker": _planned(NAME, "which of `[breakers]` guards it (S58)"),
        "budget": _planned(NAME, "which of `[budgets]` it spends (S59)"),
    }),
    "tenants": Named("tenant", _or_every(tenant_hint), {
        "weight": Key(WEIGHT, "1.0", "how much a tenant gets beside others (S41)"),
        "labels": Key(LABELS, "{}", "what tenants are found by"),
        "limits": Named("queue", _or_every(name_hint), _LIMITS),
    }),
    "worker": {
        "processes": _planned(count(1), "how many processes one command starts", "1"),
        "lease": Key(duration(1), '"12s"', "how long a claim holds without renewal (S37)"),
        "renew_every": Key(duration(0.1), '"4s"', "how often claims are renewed; below `lease`"),
        "shutdown_deadline": Key(duration(), '"30s"', "how long running jobs may go on after a stop (S32)"),
        "max_jobs": Key(or_none(count(1)), "none", "jobs after which a worker stops in good order"),
        "max_memory": _planned(or_none(size()), "memory at which a process is replaced", "none"),
        "max_crashes": _planned(
            count(1),
            "lost claims after which a job is to be dead (S40); now a job that kills its worker is run until "
            "its `max_attempts` are used up, and each time all jobs beside it lose an attempt, too",
            "3",
        ),
        "duties": Key(FLAG, "true", "whether workers share in the duties (S61)"),
    },
    "payload": {
        "warn_over": Key(size(), '"10KB"', "the size from which on a payload is remarked upon"),
        "max_size": Key(size(), '"1MB"', "the size above which a payload is refused (S5)"),
        "max_depth": Key(count(1), "32", "how deep values may be nested"),
        "check_types": Key(FLAG, "true", "whether arguments must be of the types that the hints name"),
        "sensitive": Key(
            one_of("allow", "warn", "reject"), '"warn"', "what happens to secrets in arguments (S6)"
        ),
        "require": Key(
            list_of(one_of("correlation_id", "idempotency_key")), "[]", "what an enqueue must give"
        ),
    },
    "retention": {
        "succeeded": Key(duration(), '"7d"', "how long jobs are kept that succeeded (S52)"),
        "cancelled": Key(duration(), '"7d"', "how long jobs are kept that were cancelled"),
        "dead_unreviewed": Key(duration(), '"30d"', "how long dead letters are kept"),
        "dead_reviewed": _planned(duration(), "how long dead letters are kept after their review"),
        "results": Key(duration(), '"7d"', "how long results are kept (S34)"),
        "idempotency_keys": Key(duration(), '"7d"', "how long keys are kept after their job settled (S13)"),
        "attempts_per_job": _planned(count(1), "how many attempts a job's history holds"),
    },
    "breakers": Named("breaker", name_hint, {
        "failures": _planned(count(1), "failures that open it", "5"),
        "window": _planned(duration(0.001), "within this time", '"1m"'),
        "open_for": _planned(duration(0.001), "how long it stays open", '"1m"'),
    }),
    "budgets": Named("budget", name_hint, {
        "ceiling": _planned(AMOUNT, "what may be spent in a period", "required"),
        "currency": _planned(TEXT, "of the amounts", "required"),
        "per": _planned(one_of("day", "week", "month"), "the period", '"month"'),
        "timezone": _planned(TEXT, "where the period begins", '"UTC"'),
        "estimate": _planned(AMOUNT, "reserved for a job before it runs", '"0"'),
        "on_spent": _planned(one_of("fail", "park"), "what becomes of jobs when all is spent", '"fail"'),
        "per_tenant": _planned(FLAG, "whether each tenant has its own", "false"),
        "alert_at": _planned(list_of(number(0, 1)), "shares of the ceiling that are told of", "[]"),
    }),
    "schedules": Named("schedule", name_hint, {
        "task": _planned(TEXT, "what is enqueued", "required"),
        "every": _planned(duration(0.001), "a fixed interval"),
        "cron": _planned(TEXT, "five fields"),
        "at": _planned(ANYTHING, "once, at this instant"),
        "timezone": _planned(TEXT, "of `cron`", '"UTC"'),
        "between": _planned(list_of(TEXT), "only in these hours"),
        "catch_up": _planned(ANYTHING, "what becomes of slots that were missed", '"latest"'),
        "overlap": _planned(one_of("allow", "skip", "queue_one"), "while the last job still runs", '"allow"'),
        "spread": _planned(duration(), "a random delay up to this", "0"),
        "tenant": _planned(TEXT, "whose jobs they are"),
        "for_tenants": _planned(LABELS, "one job for each tenant with these labels"),
    }),
    "escalations": Named("escalation", name_hint, {
        "send": _planned(one_of("immediately", "hourly", "daily"), "when"),
        "at": _planned(TEXT, "the time of day, where it is daily"),
        "timezone": _planned(TEXT, "of `at`", '"UTC"'),
        "to": _planned(list_of(NAME), "which of `[channels]`"),
        "respond_within": _planned(duration(0.001), "how soon somebody should have answered"),
    }),
    "channels": Named("channel", name_hint, _planned(SECRET, "where messages go; never shown")),
}  # fmt: skip


def all_keys(node: Node = TREE, path: str = "") -> Iterator[tuple[str, Key]]:
    """Give every key with its dotted name; what the user names stands as NAME, in capitals by what it is.

    >>> [name for name, _ in all_keys() if name.startswith("gates")]
    ['gates.GATE.limit', 'gates.GATE.rate']
    """
    match node:
        case Key():
            yield path, node
        case Named():
            yield from all_keys(node.entry, f"{path}.{node.what.upper()}")
        case _:
            for name, child in node.items():
                yield from all_keys(child, f"{path}.{name}" if path else name)
