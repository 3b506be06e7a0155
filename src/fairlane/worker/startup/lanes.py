"""Choose the lanes of a worker: those given, else those declared, else one over all queues (S47)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import instance, is_listed, shown
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import DEFAULT_SLOTS, Lane


def choose_lanes(app: Fairlane, wanted: Sequence[Lane | str] | None) -> list[Lane]:
    """Return the lanes to serve; `ConfigError` for a name that is not declared."""
    declared = {lane.name: lane for lane in app.settings.lanes} or {"main": _main(app)}
    if wanted is None:
        return list(declared.values())
    _check_listed(wanted)
    for name in wanted:
        instance("lanes", name, (str, Lane), "names and Lane(...)")
        if isinstance(name, str) and name not in declared:
            raise ConfigError(f"there is no lane {name}.", key="lanes", allowed=", ".join(declared))
    return [declared[one] if isinstance(one, str) else one for one in wanted]


def _check_listed(wanted: object) -> None:
    if not is_listed(wanted):
        raise ConfigError(f"it is {shown(wanted)}.", key="lanes", allowed="a list of names or of Lane(...)")


def _main(app: Fairlane) -> Lane:
    queues = dict.fromkeys([*app.settings.queues, *(task.queue for task in app.client.registry)])
    return Lane("main", DEFAULT_SLOTS, tuple(queues))
