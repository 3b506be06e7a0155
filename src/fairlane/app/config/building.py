"""Lay what file, environment and command line say over what code declares: the settings in force (S55)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from fairlane.app.config.given import Path
from fairlane.app.config.keys import TREE, Key, Named
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.config.values import Values
from fairlane.app.settings import DEFAULT_QUEUE, Settings, TaskSettings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import to_micros
from fairlane.model.layers import EVERY, TenantRules
from fairlane.model.limits import NO_LIMITS, Limits
from fairlane.model.policy import Breaker, Budget, Gate, Lane, Queue
from fairlane.model.retention import Retention
from fairlane.model.retry import Backoff

_PLAIN: Final = Queue(DEFAULT_QUEUE)
RETENTION: Final = {
    "succeeded": "succeeded",
    "cancelled": "cancelled",
    "dead_unreviewed": "dead",
    "results": "results",
    "idempotency_keys": "keys",
}
"""Key of the file to field of `Retention`."""

WORKER_DURATIONS: Final = ("lease", "renew_every", "shutdown_deadline")


def settings_over(code: Settings, values: Values, declared: Collection[str]) -> Settings:
    """Give the settings in force; what does not fit is noted with the values.

    `declared` are the queues of code and file: an environment variable cannot declare one. Only code can
    close the set of queues, lest a file that tunes one queue shut out those that only tasks name. What code
    says of where the store is was kept before: no value of it comes here.
    """
    _require(code, values)
    _check_planned(values)
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
        namespace=app.get("namespace", code.namespace),
        import_=app.get("import"),
        tenancy=app.get("tenancy", code.tenancy),
        fixed_queues=app.get("fixed_queues", code.fixed_queues),
        priority_default=app.get("priority_default", code.priority_default),
        queues=queues,
        usual=_queue(_PLAIN, values, is_named=False),
        lanes=lanes,
        gates=_gates(code, values),
        tasks={name: TaskSettings(**_known(TaskSettings, values.at("tasks", name)))
               for name in values.names("tasks")},
        tenants={name: _tenant(name, queues, values) for name in values.names("tenants")},
        worker=_worker(code.worker, values),
        retention=_retention(code.retention, values),
    )  # fmt: skip
    if "priority" in app:
        built = msgspec.structs.replace(built, is_lower_first=app["priority"] == "lower_first")
    return _with_payload(built, values)


def _known(struct: type[msgspec.Struct], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in struct.__struct_fields__}


# ── queues and tenants ───────────────────────────────────────────────────────


def _queue(base: Queue, values: Values, *, is_named: bool = True) -> Queue:
    """Lay the defaults under a queue of the code, and its own table over it.

    What equals the built-in default was not said in code, as far as anybody can see.
    """
    own = values.at("queues", base.name) if is_named else {}
    usual = {
        name: value for name, value in values.at("defaults").items()
        if getattr(base, name) == getattr(_PLAIN, name)
    }  # fmt: skip
    said = {**usual, **own}
    said.pop("color", None)
    usual_limits = {
        name: value for name, value in values.at("defaults", "limits").items()
        if getattr(base.limits, name) == getattr(NO_LIMITS, name)
    }  # fmt: skip
    own_limits = values.at("queues", base.name, "limits") if is_named else {}
    queue = replace(base, **said, limits=replace(base.limits, **usual_limits, **own_limits))
    if "max_attempts" in said or base.max_attempts != _PLAIN.max_attempts:
        return queue
    # A list of delays implies its attempts unless these were given (S26).
    implied = queue.retry.implied_attempts if isinstance(queue.retry, Backoff) else None
    return replace(queue, max_attempts=implied) if implied else queue


def _tenant(name: str, queues: Mapping[str, Queue], values: Values) -> TenantRules:
    """Read a tenant's rules; a limit that it does not name is the queue's (decision 0010)."""
    limits = {
        queue: _limits(queues.get(queue), values.at("tenants", name, "limits", queue))
        for queue in values.names("tenants", name, "limits")
    }
    return TenantRules(**values.at("tenants", name), limits=limits)


def _limits(queue: Queue | None, said: Mapping[str, Any]) -> Limits:
    return replace(NO_LIMITS if queue is None else queue.limits, **said)


# ── lanes and gates ──────────────────────────────────────────────────────────


def _lanes(code: Settings, values: Values) -> tuple[Lane, ...]:
    lanes = {lane.name: lane for lane in code.lanes}
    for name in values.names("lanes"):
        said = values.at("lanes", name)
        base = lanes.get(name)
        if base is None and not {"slots", "queues"} <= set(said):
            continue  # noted already, as missing or as what does not fit
        make = partial(Lane, name, **said) if base is None else partial(replace, base, **said)
        built = values.build(("lanes", name), make, base)
        if built is not None:
            lanes[name] = built
    return tuple(lanes.values())


def _check_queues(values: Values, lanes: Iterable[Lane], known: Sequence[str]) -> None:
    """Note every mention of a queue that nobody declares: it is most likely misspelled."""
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
    for path, name in mentions:
        if name not in known:
            message = f"queue {name} is not declared{nearest(name, list(known))}"
            values.fault(path, message, ", ".join(known))


def _gates(code: Settings, values: Values) -> tuple[Gate, ...]:
    gates = {gate.name: gate for gate in code.gates}
    for name in values.names("gates"):
        if not values.is_whole("gates", name):
            continue  # noted already, as what does not fit
        base, said = gates.get(name), values.at("gates", name)
        said.setdefault("limit", None if base is None else base.limit)
        make = partial(Gate, name, **said) if base is None else partial(replace, base, **said)
        built = values.build(("gates", name), make, base)
        if built is not None:
            gates[name] = built
    return tuple(gates.values())


# ── fixed tables ─────────────────────────────────────────────────────────────


def _worker(code: WorkerSettings, values: Values) -> WorkerSettings:
    said = values.at("worker")
    said = {name: to_micros(value) if name in WORKER_DURATIONS else value for name, value in said.items()}
    worker = msgspec.structs.replace(code, **said)
    if worker.renew_every >= worker.lease:
        key = "renew_every" if values.is_given("worker", "renew_every") else "lease"
        message = "a claim would end before it is renewed"
        values.fault(("worker", key), message, "renew_every below lease")
    return worker


def _retention(code: Retention, values: Values) -> Retention:
    said = values.at("retention")
    return msgspec.structs.replace(
        code, **{field: to_micros(said[key]) for key, field in RETENTION.items() if key in said}
    )


def _with_payload(settings: Settings, values: Values) -> Settings:
    said = values.at("payload")
    sizes = {name: said[name] for name in ("warn_over", "max_size", "max_depth") if name in said}
    rules = values.build(
        ("payload", "max_depth"), partial(msgspec.structs.replace, settings.payload, **sizes), None
    )
    return msgspec.structs.replace(
        settings,
        payload=rules or settings.payload,
        check_types=said.get("check_types", settings.check_types),
        sensitive=said.get("sensitive", settings.sensitive),
        require=said.get("require", settings.require),
    )


# ── what must be there, and what has no effect yet ───────────────────────────


def _require(code: Settings, values: Values) -> None:
    in_code = {("lanes", lane.name) for lane in code.lanes}
    for table, node in TREE.items():
        if not isinstance(node, Named) or isinstance(node.entry, Key | Named):
            continue
        needed = [
            key for key, one in node.entry.items() if isinstance(one, Key) and one.default == "required"
        ]
        for name in values.names(table):
            for key in needed:
                if (table, name) not in in_code and not values.is_given(table, name, key):
                    values.fault((table, name), f"{key} is missing")


def _check_planned(values: Values) -> None:
    """Refuse breakers and budgets that mean nothing, although nothing reads them yet."""
    for name in values.names("breakers"):
        values.build(("breakers", name), partial(Breaker, name, **values.at("breakers", name)), None)
    for name in values.names("budgets"):
        said = values.at("budgets", name)
        said.pop("alert_at", None)
        if {"ceiling", "currency"} <= set(said):
            values.build(("budgets", name), partial(Budget, name, **said), None)
