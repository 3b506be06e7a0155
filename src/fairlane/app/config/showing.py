"""Show a configuration: every key in force, its value in a form safe to read aloud, and where it is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from fairlane.app.config.building import RETENTION, WORKER_DURATIONS
from fairlane.app.config.configuration import Configuration
from fairlane.app.config.given import Given, Path, dotted, references
from fairlane.app.config.keys import TREE, Key, Named, Node
from fairlane.app.config.kinds import NONE, Kind, plain_text
from fairlane.app.settings import Settings, settings_of
from fairlane.model.instants import SECOND
from fairlane.model.policy import Queue

DEFAULT: Final = "default"
CODE: Final = "code"
IMPLIED: Final = "implied by retry"


class Row(NamedTuple):
    """One key in force: its value, safe to show, and where it is from, e.g. `fairlane.toml:12`."""

    key: str
    value: str
    source: str


def layers(configuration: Configuration) -> list[str]:
    """Name what the configuration consists of, the last one winning."""
    read = configuration.read
    sources = {one.source for one in read.given.values()}
    environment = ["environment"] if any(source.startswith("FAIRLANE_") for source in sources) else []
    options = ["command line"] if any(source.startswith("--") for source in sources) else []
    return [DEFAULT, CODE, *([read.file] if read.file else []), *environment, *options]


def rows(configuration: Configuration) -> list[Row]:
    """Give every key in force, in the order of the reference page."""
    given = configuration.read.given
    said, usual = _values(configuration.code), _values(_USUAL)
    queue = {path[1:]: value for path, value in usual.items() if path[0] == "defaults"}
    found: list[Row] = []
    lanes = {lane.name: lane for lane in configuration.settings.lanes}
    for path, value in _values(configuration.settings).items():
        if value is None and path[-1] == "headroom":
            found.append(Row(dotted(path), str(lanes[path[1]].headroom_slots), DEFAULT))
            continue
        before = queue[path[2:]] if path[0] == "queues" else usual.get(path)
        shown = _shown(_key(path).kind, value, given.get(path))
        if path in given:
            source = given[path].source
        elif path in said and (path[0] in {"lanes", "gates"} or said[path] != before):
            source = CODE
        elif path[0] == "queues" and ("defaults", *path[2:]) in given:
            source = given["defaults", *path[2:]].source
        elif path[0] == "tenants" and "limits" in path:
            source = f"queue {path[3]}"
        else:
            source = IMPLIED if path[-1] == "max_attempts" and value != before else DEFAULT
        found.append(Row(dotted(path), shown, source))
    found += [
        Row(dotted(path), _shown(one.key.kind, None, one), one.source)
        for path, one in given.items()
        if not one.key.has_effect
    ]
    places = {table: place for place, table in enumerate(TREE)}
    return sorted(found, key=lambda row: places[row.key.split(".")[0]])


def _shown(kind: Kind, value: Any, given: Given | None) -> str:
    """Show what a file refers to by its name, and what does nothing yet as it was given."""
    if given is not None and (references(given.value) or not given.key.has_effect):
        text = plain_text(given.value)
        is_reference = text == f"${{{''.join(references(text))}}}"
        return kind.show(text) if kind.is_secret and not is_reference else text
    return NONE if value is None else kind.show(value)


def _key(path: Path) -> Key:
    node: Node = TREE
    for part in path:
        assert not isinstance(node, Key)  # noqa: S101 (for the type checkers: paths come from the tree)
        node = node.entry if isinstance(node, Named) else node[part]
    assert isinstance(node, Key)  # noqa: S101 (as above)
    return node


# ── settings as tables ───────────────────────────────────────────────────────


def _values(settings: Settings) -> dict[Path, Any]:
    """Lay settings out as the file has them, by path; what has no effect yet is left out."""
    return dict(_flat(TREE, _tables(settings), ()))


def _flat(node: Node, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, Key):
        if node.has_effect:
            yield path, value
        return
    for name, inner in value.items():
        child = node.entry if isinstance(node, Named) else node[name]
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
        "defaults": _queue(settings.usual),
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


_USUAL: Final = settings_of()
