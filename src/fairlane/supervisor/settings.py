"""Read how many processes are wanted, without the application: from option, environment or file (S55)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fairlane.app.config.environment import CONFIG, from_text
from fairlane.app.config.file import NAME, read_file
from fairlane.app.config.keys import Key, all_keys
from fairlane.app.config.sources import GivenValue, refuse
from fairlane.app.config.values import ConfigValues

_PATH: Final = ("worker", "processes")
_VARIABLE: Final = "FAIRLANE_WORKER__PROCESSES"


def wanted_processes(option: int | None, config: str | None, environ: Mapping[str, str] | None = None) -> int:
    """Return the number of processes; `ConfigError` for a wrong value, or a file that cannot be read.

    Other keys are not looked at: which are right depends on the application, which the worker processes
    import.
    """
    environ = os.environ if environ is None else environ
    if option is not None:
        return _checked(option, "--processes")
    if _VARIABLE in environ:
        return _checked(from_text(_key().kind, environ[_VARIABLE]), _VARIABLE)
    path = config or environ.get(CONFIG) or (NAME if Path(NAME).exists() else None)
    if path is None:
        return 1
    file = read_file(Path(path))
    table = file.table.get("worker")
    if not isinstance(table, dict) or "processes" not in table:
        return 1
    return _checked(table["processes"], file.source(_PATH))


def _checked(value: Any, source: str) -> int:
    given = GivenValue(_key(), value, source)
    values = ConfigValues({_PATH: given}, {}, os.environ)
    refuse(values.problems)
    number: int = values.at("worker")["processes"]
    return number


def _key() -> Key:
    return dict(all_keys())[".".join(_PATH)]
