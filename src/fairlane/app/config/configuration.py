"""One application's configuration: read at first use, never at import (S55).

How much: defaults, code, file, environment, command line, the last one winning. Where (`url`, `namespace`,
and the file itself): code first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from logging import getLogger
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from fairlane.app.config.building import settings_over
from fairlane.app.config.environment import CONFIG, from_text, read_environment
from fairlane.app.config.file import NAME, read_file
from fairlane.app.config.given import Fault, Given, Path, Sheet, refuse
from fairlane.app.config.keys import all_keys
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.config.values import Values
from fairlane.app.settings import Settings
from fairlane.model.checking import instance
from fairlane.model.errors import ConfigError

_log: Final = getLogger("fairlane")

Options: TypeAlias = Mapping[str, tuple[str, Any]]
"""By option of a command line: the key that it sets, and the value."""

IN_CODE: Final = "config= in code"
DEFAULT_FILE: Final = "fairlane.db"
"""The store in the working directory, if nobody names another."""
_WHERE: Final[Mapping[Path, str]] = {("app", "url"): "url", ("app", "namespace"): "namespace"}


class Read(NamedTuple):
    """A configuration that was read: what holds, what was given, and the file that it came from, if any."""

    settings: Settings
    given: Mapping[Path, Given]
    file: str | None


class Configuration:
    """Where an application's settings come from. Making one reads nothing."""

    def __init__(
        self,
        code: Settings,
        config: FilePath | str | Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        instance("config", config, (FilePath, str, Mapping), "the path of a file or a dict", is_optional=True)
        self.code = code
        self._config = config
        self._environ = environ
        self._file: FilePath | None = None
        self._options: Options = {}
        self._is_quiet = False
        self._read: Read | None = None

    def use(
        self, *, file: FilePath | None = None, options: Options | None = None, is_quiet: bool = False
    ) -> None:
        """Take what a command line says, before the first use: its file, and by option a key and its value.

        For example `{"--processes": ("worker.processes", 4)}`; texts are read as an environment's are. Quiet
        is for a first look, when another application will read the same and say what there is to say.
        """
        self._file, self._options, self._is_quiet, self._read = file, options or {}, is_quiet, None

    @property
    def read(self) -> Read:
        """Read everything, once; `ConfigError` lists all that is wrong, and the next use reads again."""
        if self._read is None:
            self._read = self._read_all()
        return self._read

    @property
    def settings(self) -> Settings:
        """What holds."""
        return self.read.settings

    def _read_all(self) -> Read:
        environ = os.environ if self._environ is None else self._environ
        file, from_file = self._from_file(environ)
        known = [*from_file.tables, *from_file.given, *_paths_of(self.code)]
        sheets = [from_file, read_environment(environ, known), self._from_command_line()]
        given = {path: one for sheet in sheets for path, one in sheet.given.items()}
        for path, field in _WHERE.items():
            kept = getattr(self.code, field)
            if kept is not None and path in given:
                _keep(field, kept, given.pop(path))
        values = Values(given, from_file.tables, environ)
        declared = {*self.code.queues, *(path[1] for path in _below(from_file, "queues"))}
        settings = settings_over(self.code, values, declared)
        refuse([fault for sheet in sheets for fault in sheet.faults] + values.faults)
        if settings.url is None:
            settings = msgspec.structs.replace(settings, url=_default_url(), is_default_url=True)
        if file is not None and not self._is_quiet:
            _log.info("configuration: %s", file, extra={"event": "configuration", "file": file})
        if not self._is_quiet:
            _tell_without_effect(given)
        return Read(settings, given, file)

    def _from_file(self, environ: Mapping[str, str]) -> tuple[str | None, Sheet]:
        sheet = Sheet()
        if isinstance(self._config, Mapping):
            self._refuse_second_file(environ)
            sheet.take(self._config, lambda _: IN_CODE)
            return IN_CODE, sheet
        path = self._path(environ)
        if path is None:
            return None, sheet
        file = read_file(path)
        sheet.take(file.table, file.source)
        return file.name, sheet

    def _path(self, environ: Mapping[str, str]) -> FilePath | None:
        if self._config is not None:
            self._refuse_second_file(environ)
            return FilePath(str(self._config))
        if self._file is not None:
            return self._file
        if environ.get(CONFIG):
            return FilePath(environ[CONFIG])
        usual = FilePath(NAME)
        return usual if usual.exists() else None

    def _refuse_second_file(self, environ: Mapping[str, str]) -> None:
        if self._file is not None:
            message = "the application names its configuration in code already; take one of the two away."
            raise ConfigError(message, key="config", source="--config")
        if environ.get(CONFIG):
            _tell_kept("config", CONFIG)

    def _from_command_line(self) -> Sheet:
        sheet, known = Sheet(), dict(all_keys())
        for option, (name, value) in self._options.items():
            path, key = tuple(name.split(".")), known.get(name)
            if key is None:
                sheet.faults.append(Fault(path, f"there is no such key{nearest(name, list(known))}", option))
                continue
            read = from_text(key.kind, value) if isinstance(value, str) else value
            sheet.given[path] = Given(key, read, option)
        return sheet


def _paths_of(code: Settings) -> Iterator[Path]:
    yield from (("queues", name) for name in code.queues)
    yield from (("lanes", lane.name) for lane in code.lanes)
    yield from (("gates", gate.name) for gate in code.gates)


def _below(sheet: Sheet, table: str) -> Iterator[Path]:
    return (path for path in [*sheet.tables, *sheet.given] if len(path) > 1 and path[0] == table)


def _default_url() -> str:
    """Name the file in the working directory as it is now: a process may go elsewhere before it opens it."""
    try:
        return f"sqlite:///{quote(str(FilePath.cwd() / DEFAULT_FILE))}"
    except OSError as error:
        message = f"no store is named, and there is no working directory for one: {error.strerror}"
        raise ConfigError(message, key="url") from None


def _keep(field: str, kept: str, given: Given) -> None:
    """Keep what code says; refuse another value of an option: who has typed it expects it to be used."""
    if not given.source.startswith("--"):
        _tell_kept(field, given.source)
    elif given.value != kept:
        message = (
            f"the application names its {field} in code already, which is never replaced; "
            f"drop {given.source}, or look at another store without the application."
        )
        raise ConfigError(message, key=field, source=given.source)


def _tell_kept(field: str, source: str) -> None:
    # A variable or a file is there at every start: this is no news.
    _log.debug(
        "configuration: %s is given in code, so that of %s is not used",
        *(field, source),
        extra={"event": "configuration_kept", "key": field, "source": source},
    )


def _tell_without_effect(given: Mapping[Path, Given]) -> None:
    """Say once a table what nothing comes of in this version."""
    idle: dict[str, list[str]] = {}
    for path, one in given.items():
        if not one.key.has_effect:
            idle.setdefault(path[0], []).append(path[-1])
    working = {name.split(".")[0] for name, key in all_keys() if key.has_effect}
    for table, keys in idle.items():
        what = f"{', '.join(dict.fromkeys(keys))} in [{table}]" if table in working else f"[{table}]"
        _log.warning(
            "configuration: %s: no effect in this version",
            what,
            extra={"event": "configuration_without_effect", "table": table},
        )
