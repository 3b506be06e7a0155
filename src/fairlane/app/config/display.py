"""Show the effective configuration: every key with its value, secrets hidden, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from fairlane.app.config.configuration import Configuration
from fairlane.app.config.keys import TREE, Key, NamedEntries, Node
from fairlane.app.config.merge import OWN_RETENTION, RETENTION, WORKER_DURATIONS
from fairlane.app.config.sources import GivenValue, Path, dotted, references
from fairlane.app.config.value_kinds import NONE, ValueKind, plain_text
from fairlane.app.journal_settings import AuditSettings, EventSettings
from fairlane.app.settings import Settings, settings_of
from fairlane.model.instants import SECOND
from fairlane.model.policy.declared import Breaker, Queue
from fairlane.model.policy.retention import Retention

DEFAULT: Final = "default"
CODE: Final = "code"
IMPLIED: Final = "implied by retry"

_UNSET: Final = {
    "headroom": "",
    "prefetch": "what a round trip needs",
    "stuck_after": "twice the timeout",
    "color": "that of its name",
}
"""Keys without a value of their own, and what then counts; a lane's headroom depends on its slots."""


_INSTEAD: Final[Mapping[Path, str]] = {
    ("worker", "children"): "as many as slots",
    ("web", "secret"): "drawn at the start",
}
"""Keys of one table for which none means something else."""


class ConfigRow(NamedTuple):
    """One effective key: its value, safe to show, and its source, such as `fairlane.toml:12`."""

    key: str
    value: str
    source: str


def layers(configuration: Configuration) -> list[str]:
    """Return the layers of the configuration; the last one wins."""
    read = configuration.read
    sources = {one.source for one in read.given.values()}
    environment = ["environment"] if any(source.startswith("FAIRLANE_") for source in sources) else []
    options = ["command line"] if any(source.startswith("--") for source in sources) else []
    return [DEFAULT, CODE, *([read.file] if read.file else []), *environment, *options]


def rows(configuration: Configuration) -> list[ConfigRow]:
    """Return every effective key, in the order of the reference page."""
    given, settings = configuration.read.given, configuration.settings
    in_code, defaults = _values(configuration.code), _values(_DEFAULTS)
    slots = {lane.name: lane.headroom_slots for lane in settings.lanes}
    found: list[ConfigRow] = []
    for path, value in _values(settings).items():
        default = defaults.get(("defaults", *path[2:]) if path[0] == "queues" else path)
        is_in_code = path in in_code and (
            path[0] in {"lanes", "gates", "budgets", "breakers"} or in_code[path] != default
        )
        if value is None and path[-1] in _UNSET:
            shown = str(slots[path[1]]) if path[-1] == "headroom" else _UNSET[path[-1]]
            found.append(ConfigRow(dotted(path), shown, DEFAULT))
            continue
        shown = _shown(_key(path).kind, value, given.get(path))
        if value is None and path in _INSTEAD:
            shown = _INSTEAD[path]
        source = _source(path, given, is_in_code=is_in_code, is_default=value == default)
        found.append(ConfigRow(dotted(path), shown, source))
    return found


def _source(path: Path, given: Mapping[Path, GivenValue], *, is_in_code: bool, is_default: bool) -> str:
    """Return where a value comes from: the highest layer that gives it."""
    if path in given:
        return given[path].source
    if is_in_code:
        return CODE
    if path[0] == "queues" and ("defaults", *path[2:]) in given:
        return given["defaults", *path[2:]].source
    if path[0] == "tenants" and "limits" in path:
        return f"queue {path[3]}"
    return IMPLIED if path[-1] == "max_attempts" and not is_default else DEFAULT


def _shown(kind: ValueKind, value: Any, given: GivenValue | None) -> str:
    """Return a value as safe text; a value with ${VARIABLES} is shown as the file has it."""
    if given is not None and references(given.value):
        text = plain_text(given.value)
        is_reference = text == f"${{{''.join(references(text))}}}"
        return kind.show(text) if kind.is_secret and not is_reference else text
    return NONE if value is None else kind.show(value)


def _key(path: Path) -> Key:
    node: Node = TREE
    for part in path:
        assert not isinstance(node, Key)  # noqa: S101 (for the type checkers: paths come from the tree)
        node = node.entry if isinstance(node, NamedEntries) else node[part]
    assert isinstance(node, Key)  # noqa: S101 (as above)
    return node


# ── settings as tables ───────────────────────────────────────────────────────


def _values(settings: Settings) -> dict[Path, Any]:
    """Return settings by path, as the file has them."""
    return dict(_flat(TREE, _tables(settings), ()))


def _flat(node: Node, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, Key):
        yield path, value
        return
    for name, inner in value.items():
        child = node.entry if isinstance(node, NamedEntries) else node[name]
        yield from _flat(child, inner, (*path, name))


def _tables(settings: Settings) -> dict[str, Any]:
    worker = msgspec.structs.asdict(settings.worker)
    return {
        "app": {
            "import": settings.import_,
            "url": settings.url,
            "tenancy": settings.tenancy,
            "fixed_queues": settings.fixed_queues,
            "priority": "lower_first" if settings.is_lower_first else "higher_first",
            "priority_default": settings.priority_default,
        },
        "defaults": {
            name: value for name, value in _queue(settings.queue_defaults).items() if name != "color"
        },
        "queues": {name: _queue(queue) for name, queue in settings.queues.items()},
        "lanes": {lane.name: _fields(lane) for lane in settings.lanes},
        "gates": {gate.name: _fields(gate) for gate in settings.gates},
        "breakers": {one.name: _without_errors(one) for one in settings.breakers},
        "budgets": {budget.name: _fields(budget) for budget in settings.budgets},
        "tasks": {name: _given(task) for name, task in settings.tasks.items()},
        "tenants": {
            name: {
                "weight": rules.weight,
                "labels": rules.labels,
                "limits": {queue: _fields(limits) for queue, limits in rules.limits.items()},
            }
            for name, rules in settings.tenants.items()
        },
        "schedules": settings.schedules,
        "worker": {
            name: value / SECOND if name in WORKER_DURATIONS and value is not None else value
            for name, value in worker.items()
        },
        "payload": {
            **msgspec.structs.asdict(settings.payload),
            "check_types": settings.check_types,
            "sensitive": settings.sensitive,
            "require": settings.require,
            "categories": settings.categories,
        },
        "errors": msgspec.structs.asdict(settings.errors),
        "retention": _retention(settings.retention),
        "archive": msgspec.structs.asdict(settings.archive),
        "dead_letters": msgspec.structs.asdict(settings.dead_letters),
        "events": _with_seconds(settings.events),
        "audit": _with_seconds(settings.audit),
        "web": {
            **{name: getattr(settings.web, name) for name in settings.web.__struct_fields__},
            "statement_limit": settings.web.statement_limit / SECOND,
        },
        "doctor": msgspec.structs.asdict(settings.doctor),
    }


def _retention(retention: Retention) -> dict[str, Any]:
    durations = {key: getattr(retention, field) / SECOND for key, field in RETENTION.items()}
    dead_from = "decision" if retention.is_from_review else "death"
    return {
        **durations,
        "dead_from": dead_from,
        "attempts_per_job": retention.attempts,
        "newest_finished": retention.newest_finished,
        "newest_dead": retention.newest_dead,
        "store_limit": retention.store_limit,
        **{
            names: {name: keep / SECOND for name, keep in getattr(retention, names).items()}
            for names in OWN_RETENTION
        },
    }


def _with_seconds(settings: EventSettings | AuditSettings) -> dict[str, Any]:
    return {**msgspec.structs.asdict(settings), "keep": settings.keep / SECOND}


def _queue(queue: Queue) -> dict[str, Any]:
    return {**_fields(queue), "limits": _fields(queue.limits)}


def _fields(policy: Any) -> dict[str, Any]:
    return {field.name: getattr(policy, field.name) for field in fields(policy) if field.name != "name"}


def _without_errors(one: Breaker) -> dict[str, Any]:
    """Return the values of a breaker that a file can give: which errors count is the code's."""
    return {name: value for name, value in _fields(one).items() if name != "errors"}


def _given(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not UNSET}


_DEFAULTS: Final = settings_of()
