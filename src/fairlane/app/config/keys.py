"""Every key of the configuration: kind, default and meaning. The reference page is generated from this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from fairlane.app.config.policy_kinds import LABELS, QUEUES, RATE, RETRY, WEIGHT
from fairlane.app.config.schedule_kinds import BETWEEN, CATCH_UP, DATES, MOMENT, TABLE
from fairlane.app.config.value_kinds import (
    AMOUNT,
    CURRENCY,
    FLAG,
    KEY_TEMPLATE,
    NAME,
    PLACE,
    SECRET,
    SHARES,
    TEXT,
    URL,
    ZONE,
    ValueKind,
    count,
    duration,
    list_of,
    one_of,
    or_none,
    size,
)
from fairlane.app.config.web_kinds import ADDRESS, HEADER, HOST, PREFIX, REPLICA, ROLE
from fairlane.model.job import MAX_ATTEMPTS_KEPT
from fairlane.model.names import name_hint, task_hint, tenant_hint
from fairlane.model.policy.declared import COLORS, MOST_FAILURES
from fairlane.model.policy.overrides import EVERY
from fairlane.model.policy.retention import MOST_NEWEST
from fairlane.model.retry.decision import MAX_LOSSES
from fairlane.model.scheduling.priority import HIGHEST, LOWEST

MOST_PROCESSES: Final = 1_000
MOST_EVENTS: Final = 1_000_000
LAST_PORT: Final = 65_535


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
_STUCK_AFTER: Final = duration(1, 30 * 86_400)
_ON_STUCK: Final = one_of("dead", "requeue")

_KEEP: Final = Key(duration(), "none", "how long finished jobs of it are stored, whatever their state (S103)")

_LIMITS: Final[Mapping[str, Node]] = {
    "waiting": Key(or_none(count(0)), "none", "most delayed and ready jobs of one tenant in the queue (S16)"),
    "on_full": Key(one_of("warn", "reject"), '"warn"', "what happens to a job above `waiting` (S17)"),
    "running": Key(or_none(count(0)), "none", "most jobs of one tenant that run at once (S45)"),
    "rate": Key(RATE, "none", "how often jobs of one tenant may start (S44)"),
}

_POLICY: Final[Mapping[str, Node]] = {
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
    "stuck_after": Key(_STUCK_AFTER, "twice the timeout",
                       "how old a claim may be while its worker reports; above `timeout` (S31)"),
    "on_stuck": Key(_ON_STUCK, '"dead"',
                    "what becomes of a job whose claim is older: dead, or put back (S31)"),
}  # fmt: skip
_QUEUE: Final[Mapping[str, Node]] = {
    **_POLICY,
    "color": Key(one_of(*COLORS), "that of its name", "the colour that marks it in the dashboard"),
}

_SCHEDULE: Final[Mapping[str, Node]] = {
    "task": Key(TEXT, "the code's", "the task of its jobs, by name"),
    "cron": Key(TEXT, "none", "when it runs: a cron expression of five fields, or a name as @hourly (S106)"),
    "every": Key(duration(1), "none", "when it runs: so often; counted from `starts`, else from 1970"),
    "at": Key(MOMENT, "none", "when it runs: once"),
    "timezone": Key(TEXT, '"UTC"', "the zone of its times"),
    "between": Key(BETWEEN, "none", "runs only at these times of day, both included"),
    "weekdays": Key(list_of(TEXT), "[]", 'runs only on these days: ["MON", "FRI"]'),
    "holidays": Key(DATES, "[]", "days on which it does not run"),
    "days": Key(one_of("or", "and"), '"or"', "whether day of month or day of week must match, or both"),
    "missing": Key(one_of("first_valid", "shift", "skip"), "by the expression",
                   "what becomes of a local time that a change of the clock leaves out"),
    "repeated": Key(one_of("first", "second", "both"), "by the expression",
                    "which one counts of a local time that comes twice"),
    "starts": Key(MOMENT, "none", "no run before"),
    "ends": Key(MOMENT, "none", "no run after"),
    "catch_up": Key(CATCH_UP, '"latest"', "which missed runs are made up for"),
    "look_back": Key(duration(), '"1d"', "how old a run may be that is made up for"),
    "overlap": Key(one_of("allow", "skip", "queue_one"), '"allow"',
                   "what becomes of a run while the job of an earlier one is there"),
    "unique_for": Key(duration(), '"0s"', "a run that comes sooner after the one before is skipped"),
    "pause_after": Key(count(1, 1_000), "none", "dead jobs in a row after which it is paused"),
    "tenant": Key(TEXT, '"system"', "whose jobs they are"),
    "for_tenants": Key(LABELS, "none", "a job for each declared tenant with these labels"),
    "spread": Key(duration(), '"0s"', "jobs of a run start within this time instead of at once"),
    "arguments": Key(TABLE, "{}", "the arguments of its jobs, by name"),
    "queue": Key(NAME, "the task's", "where its jobs wait"),
    "priority": Key(count(LOWEST, HIGHEST), "the task's", "the priority of its jobs"),
    "max_attempts": Key(count(1, 1_000), "the task's", "number of attempts, including the first"),
    "timeout": Key(_TIMEOUT, "the task's", "the longest an attempt may run"),
    "expires_in": Key(duration(), "none", "how long after its enqueue a job may still start"),
    "tags": Key(list_of(TEXT), "[]", "tags of its jobs"),
    "metadata": Key(TABLE, "{}", "metadata of its jobs"),
    "note": Key(TEXT, '""', "what others should know"),
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
    "defaults": _POLICY,
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
    "breakers": NamedEntries("breaker", name_hint, {
        "failures": Key(count(1, MOST_FAILURES), "5", "how many failures within `window` open it (S58)"),
        "window": Key(duration(0.001), "60", "for how long a failure counts"),
        "open_for": Key(duration(0.001), "60", "for how long nobody passes once it is open"),
        "per": Key(one_of("all", "tenant"), '"all"', "whether each tenant has its own (S112)"),
        "on_open": Key(one_of("snooze", "fail"), '"snooze"',
                       "what becomes of a job whose handler meets it open (S110)"),
        "ramp": Key(count(1), "8", "how many pass at once, at most, before all do again (S111)"),
    }),
    "budgets": NamedEntries("budget", name_hint, {
        "ceiling": Key(AMOUNT, "none, must be given", "the most that jobs may spend in a period (S59)"),
        "currency": Key(CURRENCY, "none, must be given", "the currency of all its amounts"),
        "per": Key(one_of("day", "week", "month"), "month", "the calendar period (S115)"),
        "timezone": Key(ZONE, "UTC", "the time zone of that calendar"),
        "estimate": Key(AMOUNT, "0.00", "what is reserved for a job before it starts"),
        "on_spent": Key(one_of("fail", "park"), "fail",
                        "without room a job is dead at once, or waits until the period ends (S59)"),
        "per_tenant": Key(FLAG, "false", "whether each tenant has the whole ceiling"),
        "alert_at": Key(SHARES, "[0.8, 1.0]", "shares of the ceiling that are told as events (S114)"),
    }),
    "tasks": NamedEntries("task", task_hint, {
        "timeout": Key(_TIMEOUT, "the code's", "the longest an attempt may run (S31)"),
        "soft_timeout": Key(_TIMEOUT, "the code's",
                            "when a handler is asked to finish, before `timeout` (S31)"),
        "stuck_after": Key(_STUCK_AFTER, "the code's",
                           "how old a claim may be while its worker reports; above `timeout` (S31)"),
        "on_stuck": Key(_ON_STUCK, "the code's", "what becomes of a job whose claim is older (S31)"),
        "max_attempts": Key(count(1, 1_000), "the code's", "number of attempts, including the first (S25)"),
        "retry": Key(RETRY, "the code's", "delays between attempts (S26)"),
        "gate": Key(NAME, "the code's", "the gate of its jobs, one of `[gates]` (S43)"),
        "breaker": Key(NAME, "the code's", "the breaker of its jobs, one of `[breakers]` (S58)"),
        "budget": Key(NAME, "the code's", "the budget of its jobs, one of `[budgets]` (S59)"),
        "rate": Key(RATE, "the code's", "how often jobs of all tenants together may start (S44)"),
        "on_bad_result": Key(
            one_of("drop", "dead"), "the code's",
            "what happens if a result cannot be stored: drop the result, or job dead (S34)",
        ),
        "isolation": Key(one_of("auto", "process"), "the code's",
                         "where its handler runs: in the worker, or in a child process of it (S69)"),
        "max_memory": Key(or_none(size()), "the code's",
                          'most memory of its child process; needs `isolation = "process"` (S69)'),
    }),
    "tenants": NamedEntries("tenant", _or_every(tenant_hint), {
        "weight": Key(WEIGHT, "1.0", "the share of a tenant relative to others (S41)"),
        "labels": Key(LABELS, "{}", "labels by which tenants are found"),
        "limits": NamedEntries("queue", _or_every(name_hint), _LIMITS),
    }),
    "schedules": NamedEntries("schedule", name_hint, _SCHEDULE),
    "worker": {
        "lease": Key(duration(1), '"12s"', "how long a claim lasts without renewal (S37)"),
        "renew_every": Key(duration(0.1), '"4s"', "how often claims are renewed; must be below `lease`"),
        "shutdown_deadline": Key(duration(), '"30s"',
                                 "how long running jobs may continue after a stop signal (S32)"),
        "processes": Key(count(0, MOST_PROCESSES), "1",
                         "processes that share the slots of one `fairlane worker` (S47); "
                         "0 is one without a supervisor"),
        "max_jobs": Key(or_none(count(1)), "none", "number of jobs after which a worker process is replaced"),
        "max_memory": Key(or_none(size()), "none",
                          "resident memory above which a worker process is replaced"),
        "max_crashes": Key(count(1, MAX_LOSSES), "3",
                           "number of crashes, the last two its own, after which a job is dead (S40)"),
        "max_abandoned": Key(count(0), "8",
                             "handlers that ignored their end and still run; with more, a worker process is "
                             "replaced"),
        "stalled_after": Key(duration(1), '"10m"',
                             "how long no slot may make progress while jobs wait; then a worker process is "
                             "replaced (S31)"),
        "sigint": Key(one_of("graceful", "immediate"), '"graceful"',
                      "what Ctrl-C does: as SIGTERM, or stop running jobs at once"),
        "unknown_task": Key(one_of("hand_back", "fail"), '"hand_back"',
                            "a job whose task a worker does not know goes back, or is dead at once (S33)"),
        "duties": Key(FLAG, "true", "whether workers take part in the duties (S61)"),
        "children": Key(or_none(count(1)), "as many as slots",
                        "most child processes that one worker has at once (S69)"),
        "child_max_jobs": Key(or_none(count(1)), "none", "jobs after which a child process is replaced"),
        "child_max_memory": Key(or_none(size()), "none",
                                "resident memory above which a child process is replaced after its job"),
        "child_max_age": Key(or_none(duration(1)), '"1h"',
                             "age at which a child process is replaced after its job"),
        "health_host": Key(TEXT, '"127.0.0.1"', "where `health_port` is; 0.0.0.0 is all of this machine"),
        "health_port": Key(or_none(count(1, LAST_PORT)), "none",
                           "a port on which worker and scheduler answer /livez, /readyz and /health (S92)"),
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
        "categories": NamedEntries(
            "category", name_hint, Key(list_of(TEXT), "[]", "arguments that jobs of this category must have")
        ),
    },
    "errors": {
        "message": Key(count(100, 2_000), "2000", "characters of an error's message that are stored"),
        "traceback": Key(count(0, 16_000), "16000",
                         "characters of a traceback that are stored, its end; 0 stores none"),
    },
    "retention": {
        "succeeded": Key(duration(), '"7d"', "how long succeeded jobs are stored (S52)"),
        "cancelled": Key(duration(), '"7d"', "how long cancelled jobs are stored"),
        "dead_unreviewed": Key(duration(), '"30d"',
                               "how long dead letters are stored that await a decision or run again (S75)"),
        "dead_reviewed": Key(duration(), '"7d"',
                             "how long dead letters are stored that were resolved, ignored or discarded"),
        "results": Key(duration(), '"7d"', "how long results are stored (S34)"),
        "idempotency_keys": Key(duration(), '"7d"',
                                "how long keys outlive the settlement of their job (S13)"),
        "dead_from": Key(one_of("decision", "death"), '"decision"',
                         "when the time of `dead_reviewed` begins"),
        "attempts_per_job": Key(count(1, MAX_ATTEMPTS_KEPT), "10",
                                "most ended attempts that a job's record keeps, with errors and logs (S24)"),
        "newest_finished": Key(or_none(count(1, MOST_NEWEST)), "none",
                               "how many succeeded and cancelled jobs are stored at most, the newest (S103)"),
        "newest_dead": Key(or_none(count(1, MOST_NEWEST)), "none",
                           "how many dead letters are stored at most, those that died last"),
        "store_limit": Key(or_none(size()), "none",
                           "how much the store may take; above 85 % of it, or of a server's own limit, "
                           "history is removed early (S126)"),
        "tasks": NamedEntries("task", task_hint, _KEEP),
        "tenants": NamedEntries("tenant", tenant_hint, _KEEP),
        "queues": NamedEntries("queue", name_hint, _KEEP),
    },
    "archive": {
        "to": Key(or_none(PLACE), "none",
                  "where finished jobs go before they are removed: a folder, or a URL of fsspec (S105)"),
        "format": Key(one_of("jsonl", "parquet"), '"jsonl"',
                      "what its files are: JSON lines, or Parquet, which needs fairlane[parquet]"),
        "compress": Key(one_of("gzip", "none"), '"gzip"', "how its files are compressed"),
    },
    "dead_letters": {
        "alert_above": Key(or_none(count(0)), "50",
                           "number of pending dead letters above which there is an event (S76)"),
        "key": Key(KEY_TEMPLATE, '"{key}#r{n}"', "idempotency key of a job in place of a dead one (S75)"),
    },
    "events": {
        "keep": Key(duration(60), '"7d"', "how long events are stored (S76)"),
        "most": Key(count(1, MOST_EVENTS), "10000",
                    "number of events that are stored; up to ten times as many until subscribers have them"),
    },
    "audit": {
        "key": Key(SECRET, "none",
                   "the key of the seals, which no store knows; without it they are checksums (S60)"),
        "keep": Key(duration(86_400), '"365d"', "how long entries of the audit are stored"),
    },
    "web": {
        "host": Key(TEXT, '"127.0.0.1"', "the address to listen at; 0.0.0.0 is all of this machine"),
        "port": Key(count(0, LAST_PORT), "8080", "its port; 0 takes a free one"),
        "prefix": Key(or_none(PREFIX), "none", "the path below which everything is served"),
        "allowed_hosts": Key(list_of(HOST), "[]",
                             "names that requests may use for this server, beside `host` and the loopback's"),
        "trusted_proxies": Key(list_of(ADDRESS), "[]",
                               "whose X-Forwarded-For and X-Forwarded-Proto are believed"),
        "basic_auth": Key(FLAG, "false", "whether a request may bring name and password each time (S91)"),
        "user_header": Key(or_none(HEADER), "none",
                           "the header in which `trusted_proxies` name the user; they must replace it"),
        "user_header_role": Key(or_none(ROLE), "none",
                                "the role of such a user that the store does not know; none: it is nobody"),
        "see_dead_letters": Key(ROLE, '"manager"', "the least role that sees dead letters"),
        "review_dead_letters": Key(ROLE, '"manager"', "the least role that decides about dead letters"),
        "rate": Key(or_none(RATE), '{ limit = 600, per = "minute", burst = 100 }',
                    "how often one caller may ask; more are answered 429"),
        "max_body": Key(size(), '"20MB"', "the largest body of a request"),
        "statement_limit": Key(duration(0.1, 60), '"2s"',
                               "how long reading may take; what takes longer is stopped and answered 504"),
        "replica_url": Key(or_none(REPLICA), "none",
                           "a PostgreSQL replica that pages are read from; changes go to the store"),
        "secret": Key(or_none(SECRET), "drawn at the start",
                      "signs what one page tells the next; several web processes share it"),
    },
    "doctor": {
        "max_ready": Key(or_none(count(0)), "1000", "ready jobs of a queue above which there is a finding"),
        "max_memory": Key(or_none(size()), '"500MB"',
                          "memory of a Redis server above which there is a finding"),
        "min_workers": Key(count(0), "1",
                           "live workers below which there is a finding, critical while jobs are ready"),
        "min_clients": Key(count(0), "1",
                           "connections of others to the server below which there is a finding, critical "
                           "while jobs are ready; a SQLite file has none"),
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
