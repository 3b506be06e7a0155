"""Import the application that MODULE:APP names, or explain why that failed. Opens no store."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from fairlane import Fairlane
from fairlane.model.errors import ConfigError

_FORM: Final = "MODULE:APP, as in shop.jobs:app"


def load(name: str) -> Fairlane:
    """Import MODULE and return its APP. The current directory is searched first.

    `ConfigError` names the line that failed, or the applications that the module does have.
    """
    module, found = find(name, "app", _FORM)
    if isinstance(found, Fairlane):
        return found
    what = "is not a Fairlane application" if found is not None else "does not exist"
    known = sorted(key for key, value in vars(module).items() if isinstance(value, Fairlane))
    allowed = ", ".join(f"{module.__name__}:{key}" for key in known) or "create one with app = Fairlane(...)"
    raise ConfigError(f"{name} {what}.", key="app", allowed=allowed)


def find(name: str, key: str, form: str) -> tuple[ModuleType, object]:
    """Import the module of MODULE:NAME; return it and the value of NAME, None if it has none."""
    module_name, separator, path = name.partition(":")
    if not separator or not module_name or not path:
        raise ConfigError(f"{name[:80]!r} is not a valid name.", key=key, allowed=form)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name)
    found: object = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return module, found


def import_tasks(app: Fairlane) -> None:
    """Import the further modules that the application's configuration names, which register their tasks."""
    for name in app.settings.imports:
        _import(name)


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ConfigError:
        raise
    except Exception as error:  # the application's own code may raise anything
        raise ConfigError(f"{name} cannot be imported: {_describe(error)}", key="app") from error


def _describe(error: Exception) -> str:
    """Describe the error and the line of the application that raised it."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}{_at(error.filename, error.lineno, error.text)}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    where = _at(frames[-1].filename, frames[-1].lineno, frames[-1].line) if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _at(file: str | None, line: int | None, text: str | None) -> str:
    return f"\n  {file}, line {line}:\n    {(text or '').strip()}"
