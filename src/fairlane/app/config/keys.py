"""Every key of the configuration: kind, default and meaning. The reference page is generated from this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from fairlane.app.config.policy_kinds import LABELS, QUEUES, RATE, RETRY, WEIGHT
from fairlane.app.config.value_kinds import (
    FLAG,
    NAME,
    TEXT,
    URL,
    ValueKind,
    count,
    duration,
    list_of,
    one_of,
    or_none,
    size,
)
from fairlane.model.names import name_hint, task_hint, tenant_hint
from fairlane.model.policy.overrides import EVERY
from fairlane.model.scheduling.priority import HIGHEST, LOWEST


class Key(msgspec.Struct, frozen=True):
    """One key: its kind, its default as a file would spell it, and what it means."""

    kind: ValueKind
    default: str
    about: str


class NamedEntries(msgspec.Struct, frozen=True):
    """Entries under names of the user's own choice; `hint` says what is wrong with a name."""

    what: str
    hint: Callable[[object], str | None]
    entry: Node


Node: TypeAlias = "Key | NamedEntries | Mapping[str, Node]"


def _or_every(hint: Callable[[object], str | None]) -> Callable[[object], str | None]:
    return lambda name: None if name == EVERY else hint(name)


_TIMEOUT: Final = or_none(duration(1, 86_400))

_LIMITS: Final[Mapping[str, Node]] = {
    "waiting": Key(or_none(count(0)), "none", "most delayed and ready jobs of one tenant in the queue (S16)"),
    "on_full": Key(one_of("warn", "reject"), '"warn"', "what happens to a job above `waiting` (S17)"),
    "running": Key(or_none(count(0)), "none", "most jobs of one tenant that run at once (S45)"),
    "rate": Key(RATE, "none", "how often jobs of one tenant may start (S44)"),
}

_QUEUE: Final[Mapping[str, Node]] = {
    "timeout": Key(_TIMEOUT, '"30m"', "the longest an attempt may run (S31)"),
    "max_attempts": Key(count(1, 1_000), "5", "number of attempts, including the first (S25)"),
    "retry": Key(RETRY, '{ kind = "exponential", base = 2, factor = 2, cap = 300, floor = 0, jitter = 0.2 }',
                 "delays between attempts (S26): one policy for all errors, or one per error class"),
    "limits": _LIMITS,
    "max_waiting": Key(or_none(count(0)), "none",
                       "most delayed and ready jobs of all tenants together (S18)"),
    "rate": Key(RATE, "none", "how often jobs of all tenants together may start (S44)"),
    "cost": Key(one_of("jobs", "seconds"), '"jobs"',
                "what fairness counts: started jobs, or seconds of running (S41)"),
}  # fmt: skip

TREE: Final[Mapping[str, Node]] = {
    "app": {
        "import": Key(TEXT, "none", "the application that commands run, as `module:name`"),
        "url": Key(URL, '"sqlite:///fairlane.db"', "the store; a URL given in code wins"),
        "tenancy": Key(one_of("open", "required", "declared"), '"open"',
                       "who may have jobs: anybody, any named tenant, declared tenants (S7)"),
        "fixed_queues": Key(FLAG, "false", "whether jobs must stay in the home queue of their task (S11)"),
        "priority": Key(
            one_of("higher_first", "lower_first"), '"higher_first"', "which priorities run first (S19)"
        ),
        "priority_default": Key(count(LOWEST, HIGHEST), "0", "the priority of tasks that declare none"),
    },
    "defaults": _QUEUE,
    "queues": NamedEntries("queue", name_hint, _QUEUE),
    "lanes": NamedEntries("lane", name_hint, {
        "slots": Key(count(1), "required", "how many jobs run at once (S47)"),
        "queues": Key(QUEUES, "required", "the queues that the lane serves, with their shares"),
        "order": Key(one_of("weighted", "strict"), '"weighted"',
                     "how the lane chooses between its queues (S49)"),
        "headroom": Key(count(0), "slots / 8, at least 1; 0 of 1",
                        "slots reserved for tenants with no running job (S48); 0 reserves none"),
        "prefetch": Key(count(0), "what a round trip needs",
                        "most jobs claimed before a slot is free for them (S68); 0 claims none ahead"),
    }),
    "gates": NamedEntries("gate", name_hint, {
        "limit": Key(or_none(count(0)), "none", "most jobs that run at once on all workers (S43)"),
        "rate": Key(RATE, "none", "how often jobs may start on all workers"),
    }),
    "tasks": NamedEntries("task", task_hint, {
        "timeout": Key(_TIMEOUT, "the code's", "the longest an attempt may run (S31)"),
        "soft_timeout": Key(_TIMEOUT, "the code's",
                            "when a handler is asked to finish, before `timeout` (S31)"),
        "max_attempts": Key(count(1, 1_000), "the code's", "number of attempts, including the first (S25)"),
        "retry": Key(RETRY, "the code's", "delays between attempts (S26)"),
        "gate": Key(NAME, "the code's", "the gate of its jobs, one of `[gates]` (S43)"),
        "rate": Key(RATE, "the code's", "how often jobs of all tenants together may start (S44)"),
        "on_bad_result": Key(
            one_of("drop", "dead"), "the code's",
            "what happens if a result cannot be stored: drop the result, or job dead (S34)",
        ),
    }),
    "tenants": NamedEntries("tenant", _or_every(tenant_hint), {
        "weight": Key(WEIGHT, "1.0", "the share of a tenant relative to others (S41)"),
        "labels": Key(LABELS, "{}", "labels by which tenants are found"),
        "limits": NamedEntries("queue", _or_every(name_hint), _LIMITS),
    }),
    "worker": {
        "lease": Key(duration(1), '"12s"', "how long a claim lasts without renewal (S37)"),
        "renew_every": Key(duration(0.1), '"4s"', "how often claims are renewed; must be below `lease`"),
        "shutdown_deadline": Key(duration(), '"30s"',
                                 "how long running jobs may continue after a stop signal (S32)"),
        "max_jobs": Key(or_none(count(1)), "none", "number of jobs after which a worker stops in good order"),
        "duties": Key(FLAG, "true", "whether workers take part in the duties (S61)"),
    },
    "payload": {
        "warn_over": Key(size(), '"10KB"', "payloads above this size are logged as large"),
        "max_size": Key(size(), '"1MB"', "payloads above this size are refused (S5)"),
        "max_depth": Key(count(1), "32", "deepest nesting of values"),
        "check_types": Key(FLAG, "true", "whether arguments are checked against the type hints"),
        "sensitive": Key(
            one_of("allow", "warn", "reject"), '"warn"',
            "what to do about arguments that look like secrets (S6)",
        ),
        "require": Key(
            list_of(one_of("correlation_id", "idempotency_key")), "[]", "options that every enqueue must give"
        ),
    },
    "retention": {
        "succeeded": Key(duration(), '"7d"', "how long succeeded jobs are stored (S52)"),
        "cancelled": Key(duration(), '"7d"', "how long cancelled jobs are stored"),
        "dead_unreviewed": Key(duration(), '"30d"', "how long dead letters are stored"),
        "results": Key(duration(), '"7d"', "how long results are stored (S34)"),
        "idempotency_keys": Key(duration(), '"7d"',
                                "how long keys outlive the settlement of their job (S13)"),
    },
}  # fmt: skip


def all_keys(node: Node = TREE, path: str = "") -> Iterator[tuple[str, Key]]:
    """Yield every key with its dotted name; a name of the user's choice is in capitals, as QUEUE.

    >>> [name for name, _ in all_keys() if name.startswith("gates")]
    ['gates.GATE.limit', 'gates.GATE.rate']
    """
    match node:
        case Key():
            yield path, node
        case NamedEntries():
            yield from all_keys(node.entry, f"{path}.{node.what.upper()}")
        case _:
            for name, child in node.items():
                yield from all_keys(child, f"{path}.{name}" if path else name)
