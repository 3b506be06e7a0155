"""Show the effective configuration: every key with its value, secrets hidden, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from fairlane.app.config.configuration import Configuration
from fairlane.app.config.keys import TREE, Key, NamedEntries, Node
from fairlane.app.config.merge import RETENTION, WORKER_DURATIONS
from fairlane.app.config.sources import GivenValue, Path, dotted, references
from fairlane.app.config.value_kinds import NONE, ValueKind, plain_text
from fairlane.app.settings import Settings, settings_of
from fairlane.model.instants import SECOND
from fairlane.model.policy.declared import Queue

DEFAULT: Final = "default"
CODE: Final = "code"
IMPLIED: Final = "implied by retry"


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
        is_in_code = path in in_code and (path[0] in {"lanes", "gates"} or in_code[path] != default)
        if value is None and path[-1] in {"headroom", "prefetch"}:
            shown = str(slots[path[1]]) if path[-1] == "headroom" else "what a round trip needs"
            found.append(ConfigRow(dotted(path), shown, DEFAULT))
            continue
        shown = _shown(_key(path).kind, value, given.get(path))
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
        "defaults": _queue(settings.queue_defaults),
        "queues": {name: _queue(queue) for name, queue in settings.queues.items()},
        "lanes": {lane.name: _fields(lane) for lane in settings.lanes},
        "gates": {gate.name: _fields(gate) for gate in settings.gates},
        "tasks": {name: _given(task) for name, task in settings.tasks.items()},
        "tenants": {
            name: {
                "weight": rules.weight,
                "labels": rules.labels,
                "limits": {queue: _fields(limits) for queue, limits in rules.limits.items()},
            }
            for name, rules in settings.tenants.items()
        },
        "worker": {
            name: value / SECOND if name in WORKER_DURATIONS else value for name, value in worker.items()
        },
        "payload": {
            **msgspec.structs.asdict(settings.payload),
            "check_types": settings.check_types,
            "sensitive": settings.sensitive,
            "require": settings.require,
        },
        "retention": {key: getattr(settings.retention, field) / SECOND for key, field in RETENTION.items()},
    }


def _queue(queue: Queue) -> dict[str, Any]:
    return {**_fields(queue), "limits": _fields(queue.limits)}


def _fields(policy: Any) -> dict[str, Any]:
    return {field.name: getattr(policy, field.name) for field in fields(policy) if field.name != "name"}


def _given(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not UNSET}


_DEFAULTS: Final = settings_of()
