"""Merge the values of file, environment and command line into the settings of the code (S55)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from fairlane.app.config.keys import TREE, Key, NamedEntries
from fairlane.app.config.sources import Path
from fairlane.app.config.values import ConfigValues
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.journal_settings import AuditSettings, EventSettings
from fairlane.app.schedules.reading import when_problems
from fairlane.app.settings import DEFAULT_QUEUE, Settings, TaskSettings
from fairlane.app.web_settings import WebSettings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import to_micros
from fairlane.model.policy.declared import Breaker, Budget, Gate, Lane, Queue
from fairlane.model.policy.limits import NO_LIMITS, Limits
from fairlane.model.policy.overrides import EVERY, TenantRules
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.backoff import Backoff

_PLAIN: Final = Queue(DEFAULT_QUEUE)
RETENTION: Final = {
    "succeeded": "succeeded",
    "cancelled": "cancelled",
    "dead_unreviewed": "dead",
    "dead_reviewed": "dead_reviewed",
    "results": "results",
    "idempotency_keys": "keys",
}
"""Fields of `Retention` that are durations, by key of the file."""

COUNTED_RETENTION: Final = ("newest_finished", "newest_dead", "store_limit")
"""Fields of `Retention` that are numbers, or none."""

OWN_RETENTION: Final = ("tasks", "tenants", "queues")
"""Tables of `[retention]` with a time for each name."""

WORKER_DURATIONS: Final = ("lease", "renew_every", "shutdown_deadline", "stalled_after", "child_max_age")


def settings_over(code: Settings, values: ConfigValues, declared: Collection[str]) -> Settings:
    """Return the effective settings; problems are collected in `values`.

    `declared` are the queues of code and file: an environment variable cannot declare one. Only code can
    close the set of queues; otherwise a file that tunes one queue would exclude those that only tasks name.
    """
    _require(code, values)
    app = values.at("app")
    queues = {
        name: _queue(code.queues.get(name, Queue(name)), values)
        for name in dict.fromkeys([*code.queues, *values.names("queues")])
    }
    lanes = _lanes(code, values)
    if not code.has_open_queues or set(declared) - {DEFAULT_QUEUE}:
        _check_queues(values, lanes, sorted({DEFAULT_QUEUE, *declared}))
    built = msgspec.structs.replace(
        code,
        url=app.get("url", code.url),
        import_=app.get("import"),
        tenancy=app.get("tenancy", code.tenancy),
        fixed_queues=app.get("fixed_queues", code.fixed_queues),
        priority_default=app.get("priority_default", code.priority_default),
        queues=queues,
        queue_defaults=_queue(_PLAIN, values, is_named=False),
        lanes=lanes,
        gates=_gates(code, values),
        breakers=_breakers(code, values),
        budgets=_budgets(code, values),
        tasks={name: TaskSettings(**values.at("tasks", name)) for name in values.names("tasks")},
        tenants={name: _tenant(name, queues, values) for name in values.names("tenants")},
        schedules=_schedules(values),
        worker=_worker(code.worker, values),
        errors=msgspec.structs.replace(code.errors, **values.at("errors")),
        retention=_retention(code.retention, values),
        archive=msgspec.structs.replace(code.archive, **values.at("archive")),
        dead_letters=msgspec.structs.replace(code.dead_letters, **values.at("dead_letters")),
        events=_events(code.events, values),
        audit=_audit(code.audit, values),
        web=_web(code.web, values),
        doctor=msgspec.structs.replace(code.doctor, **values.at("doctor")),
    )  # fmt: skip
    if "priority" in app:
        built = msgspec.structs.replace(built, is_lower_first=app["priority"] == "lower_first")
    return _with_payload(built, values)


# ── queues and tenants ───────────────────────────────────────────────────────


def _queue(base: Queue, values: ConfigValues, *, is_named: bool = True) -> Queue:
    """Return a queue of the code with `[defaults]` below it and its own table above it.

    A value that equals the built-in default counts as not given in code: the two cannot be told apart.
    """
    own = values.at("queues", base.name) if is_named else {}
    defaults = {
        name: value for name, value in values.at("defaults").items()
        if getattr(base, name) == getattr(_PLAIN, name)
    }  # fmt: skip
    given = {**defaults, **own}
    default_limits = {
        name: value for name, value in values.at("defaults", "limits").items()
        if getattr(base.limits, name) == getattr(NO_LIMITS, name)
    }  # fmt: skip
    own_limits = values.at("queues", base.name, "limits") if is_named else {}
    queue = replace(base, **given, limits=replace(base.limits, **default_limits, **own_limits))
    if "max_attempts" in given or base.max_attempts != _PLAIN.max_attempts:
        return queue
    # A list of delays implies its attempts unless these were given (S26).
    implied = queue.retry.implied_attempts if isinstance(queue.retry, Backoff) else None
    return replace(queue, max_attempts=implied) if implied else queue


def _tenant(name: str, queues: Mapping[str, Queue], values: ConfigValues) -> TenantRules:
    """Return a tenant's rules; a limit it does not name is the queue's (decision 0010)."""
    limits = {
        queue: _limits(queues.get(queue), values.at("tenants", name, "limits", queue))
        for queue in values.names("tenants", name, "limits")
    }
    return TenantRules(**values.at("tenants", name), limits=limits)


def _limits(queue: Queue | None, given: Mapping[str, Any]) -> Limits:
    return replace(NO_LIMITS if queue is None else queue.limits, **given)


# ── lanes, gates and breakers ──────────────────────────────────────────────────────────


def _lanes(code: Settings, values: ConfigValues) -> tuple[Lane, ...]:
    lanes = {lane.name: lane for lane in code.lanes}
    for name in values.names("lanes"):
        given = values.at("lanes", name)
        base = lanes.get(name)
        if base is None and not {"slots", "queues"} <= set(given):
            continue  # reported already, as missing or illegal
        make = partial(Lane, name, **given) if base is None else partial(replace, base, **given)
        built = values.build(("lanes", name), make, base)
        if built is not None:
            lanes[name] = built
    return tuple(lanes.values())


def _check_queues(values: ConfigValues, lanes: Iterable[Lane], known: Sequence[str]) -> None:
    """Report every mention of an undeclared queue: it is most likely misspelled."""
    mentions: list[tuple[Path, str]] = [(("queues", name), name) for name in values.names("queues")]
    mentions += [
        (("lanes", lane.name, "queues"), name)
        for lane in lanes
        if values.is_given("lanes", lane.name, "queues")
        for name in lane.shares()
    ]
    mentions += [
        (("tenants", tenant, "limits", name), name)
        for tenant in values.names("tenants")
        for name in values.names("tenants", tenant, "limits")
        if name != EVERY
    ]
    mentions += [(("retention", "queues", name), name) for name in values.names("retention", "queues")]
    for path, name in mentions:
        if name not in known:
            message = f"queue {name} is not declared{did_you_mean(name, list(known))}"
            values.problem(path, message, ", ".join(known))


def _gates(code: Settings, values: ConfigValues) -> tuple[Gate, ...]:
    gates = {gate.name: gate for gate in code.gates}
    for name in values.names("gates"):
        if not values.is_whole("gates", name):
            continue  # reported already, as illegal
        base, given = gates.get(name), values.at("gates", name)
        given.setdefault("limit", None if base is None else base.limit)
        make = partial(Gate, name, **given) if base is None else partial(replace, base, **given)
        built = values.build(("gates", name), make, base)
        if built is not None:
            gates[name] = built
    return tuple(gates.values())


def _breakers(code: Settings, values: ConfigValues) -> tuple[Breaker, ...]:
    breakers = {one.name: one for one in code.breakers}
    for name in values.names("breakers"):
        if not values.is_whole("breakers", name):
            continue  # reported already, as illegal
        base, given = breakers.get(name), values.at("breakers", name)
        make = partial(Breaker, name, **given) if base is None else partial(replace, base, **given)
        built = values.build(("breakers", name), make, base)
        if built is not None:
            breakers[name] = built
    return tuple(breakers.values())


def _budgets(code: Settings, values: ConfigValues) -> tuple[Budget, ...]:
    budgets = {budget.name: budget for budget in code.budgets}
    for name in values.names("budgets"):
        if not values.is_whole("budgets", name):
            continue  # reported already, as illegal
        base, given = budgets.get(name), values.at("budgets", name)
        needed = {"ceiling": None, "currency": None}  # a budget of the file alone must say both
        make = (
            partial(Budget, name, **{**needed, **given}) if base is None else partial(replace, base, **given)
        )
        built = values.build(("budgets", name), make, base)
        if built is not None:
            budgets[name] = built
    return tuple(budgets.values())


# ── schedules ────────────────────────────────────────────────────────────────


def _schedules(values: ConfigValues) -> dict[str, Mapping[str, Any]]:
    """Return what is said of each schedule; what says when must fit together, if the file says it."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in values.names("schedules"):
        words = found[name] = values.at("schedules", name)
        if not values.is_whole("schedules", name) or not {"cron", "every", "at"} & set(words):
            continue  # reported already, or the code says when
        for problem in when_problems(words):
            values.problem(("schedules", name, problem.field), problem.message, problem.hint)
    return found


# ── fixed tables ─────────────────────────────────────────────────────────────


def _worker(code: WorkerSettings, values: ConfigValues) -> WorkerSettings:
    given = values.at("worker")
    given = {
        name: to_micros(value) if name in WORKER_DURATIONS and value is not None else value
        for name, value in given.items()
    }
    worker = msgspec.structs.replace(code, **given)
    if worker.renew_every >= worker.lease:
        key = "renew_every" if values.is_given("worker", "renew_every") else "lease"
        message = "the lease would expire before it is renewed"
        values.problem(("worker", key), message, "renew_every below lease")
    return worker


def _retention(code: Retention, values: ConfigValues) -> Retention:
    given = values.at("retention")
    changed: dict[str, Any] = {
        field: to_micros(given[key]) for key, field in RETENTION.items() if key in given
    }
    if "dead_from" in given:
        changed["is_from_review"] = given["dead_from"] == "decision"
    if "attempts_per_job" in given:
        changed["attempts"] = given["attempts_per_job"]
    changed |= {name: given[name] for name in COUNTED_RETENTION if name in given}
    for names in OWN_RETENTION:
        times = {name: to_micros(keep) for name, keep in values.at("retention", names).items()}
        changed[names] = {**getattr(code, names), **times}
    return msgspec.structs.replace(code, **changed)


def _events(code: EventSettings, values: ConfigValues) -> EventSettings:
    given = values.at("events")
    if "keep" in given:
        given["keep"] = to_micros(given["keep"])
    return msgspec.structs.replace(code, **given)


def _audit(code: AuditSettings, values: ConfigValues) -> AuditSettings:
    given = values.at("audit")
    if "keep" in given:
        given["keep"] = to_micros(given["keep"])
    if given.get("key") is not None:
        given["key"] = given["key"].encode()
    return msgspec.structs.replace(code, **given)


def _web(code: WebSettings, values: ConfigValues) -> WebSettings:
    given = values.at("web")
    if "statement_limit" in given:
        given["statement_limit"] = to_micros(given["statement_limit"])
    web = msgspec.structs.replace(code, **given)
    if web.review_dead_letters is not web.see_dead_letters and web.see_dead_letters.includes(
        web.review_dead_letters
    ):
        message = "who decides about dead letters must see them"
        values.problem(("web", "review_dead_letters"), message, f"{web.see_dead_letters} or a role above it")
    if web.user_header is not None and not web.trusted_proxies:
        message = "nobody's header is believed without web.trusted_proxies"
        values.problem(("web", "user_header"), message, "the addresses of the proxy in trusted_proxies, too")
    if web.user_header_role is not None and web.user_header is None:
        values.problem(("web", "user_header_role"), "there is no web.user_header", "the header too, or none")
    return web


def _with_payload(settings: Settings, values: ConfigValues) -> Settings:
    given = values.at("payload")
    sizes = {name: given[name] for name in ("warn_over", "max_size", "max_depth") if name in given}
    rules = values.build(
        ("payload", "max_depth"), partial(msgspec.structs.replace, settings.payload, **sizes), None
    )
    return msgspec.structs.replace(
        settings,
        payload=rules or settings.payload,
        check_types=given.get("check_types", settings.check_types),
        sensitive=given.get("sensitive", settings.sensitive),
        require=given.get("require", settings.require),
        categories={
            **settings.categories,
            **{name: tuple(fields) for name, fields in values.at("payload", "categories").items()},
        },
    )


# ── required keys ───────────────────────────


def _require(code: Settings, values: ConfigValues) -> None:
    in_code = {("lanes", lane.name) for lane in code.lanes}
    for table, node in TREE.items():
        if not isinstance(node, NamedEntries) or isinstance(node.entry, Key | NamedEntries):
            continue
        needed = [
            key for key, one in node.entry.items() if isinstance(one, Key) and one.default == "required"
        ]
        for name in values.names(table):
            for key in needed:
                if (table, name) not in in_code and not values.is_given(table, name, key):
                    values.problem((table, name), f"{key} is missing")
