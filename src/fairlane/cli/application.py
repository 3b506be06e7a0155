"""Find the application that MODULE:APP names, and say plainly why it cannot be found. Opens no store."""

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
    """Import MODULE and give its APP; modules are looked for in the current folder first.

    `ConfigError` says which line failed, or which applications the module does have.
    """
    module, found = find(name, "app", _FORM)
    if isinstance(found, Fairlane):
        return found
    what = "is no Fairlane" if found is not None else "is not there"
    known = sorted(key for key, value in vars(module).items() if isinstance(value, Fairlane))
    allowed = ", ".join(f"{module.__name__}:{key}" for key in known) or "make one with app = Fairlane(...)"
    raise ConfigError(f"{name} {what}.", key="app", allowed=allowed)


def find(name: str, key: str, form: str) -> tuple[ModuleType, object]:
    """Import the module of MODULE:NAME and give it with what NAME is in it, None if nothing."""
    module_name, separator, path = name.partition(":")
    if not separator or not module_name or not path:
        raise ConfigError(f"{name[:80]!r} names nothing.", key=key, allowed=form)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name)
    found: object = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return module, found


def import_tasks(app: Fairlane) -> None:
    """Import the modules that the application names besides its own, so that their tasks are known."""
    for name in app.settings.imports:
        _import(name)


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ConfigError:
        raise
    except Exception as error:  # the application's own code may raise anything
        raise ConfigError(f"{name} cannot be imported: {_told(error)}", key="app") from error


def _told(error: Exception) -> str:
    """Name the error and the line of the application that it comes from."""
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
