"""Find the name under which a child process can import an application, and import it there."""

from __future__ import annotations

import sys
from importlib import import_module

from fairlane.app.fairlane import Fairlane
from fairlane.model.errors import ConfigError


def import_path_of(app: Fairlane) -> str | None:
    """Return MODULE:NAME of an application; None if it has no name at the top of an imported module.

    A script run as `__main__` has another name when it is imported, and would be run again.
    """
    if app.import_path is not None:
        return app.import_path
    homes = {task.handler.func.__module__ for task in app.client.registry}
    modules = {name: sys.modules[name] for name in homes if name in sys.modules}
    for name, module in (*modules.items(), *tuple(sys.modules.items())):
        if name == "__main__":
            continue
        names: dict[str, object] = getattr(module, "__dict__", {})  # other things than modules may be there
        for attribute, value in tuple(names.items()):
            if value is app:
                return f"{name}:{attribute}"
    return None


def import_application(name: str) -> Fairlane:
    """Import MODULE:NAME; what the module raises goes up as it is."""
    module_name, _, path = name.partition(":")
    found: object = import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Fairlane):
        raise ConfigError(f"{name} is not a Fairlane application in a child process.", key="app")
    return found


def import_tasks(app: Fairlane) -> None:
    """Import the further modules that the configuration names, which register their tasks."""
    for name in app.settings.imports:
        import_module(name)
