"""The configuration of one application, read at first use and never at import (S55).

Layers, the last one wins: defaults, code, file, environment, command line. For `url` and the path
of the file, code wins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from logging import getLogger
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from fairlane.app.config.environment import CONFIG, from_text, read_environment
from fairlane.app.config.file import NAME, read_file
from fairlane.app.config.keys import all_keys
from fairlane.app.config.merge import settings_over
from fairlane.app.config.sources import ConfigLayer, ConfigProblem, GivenValue, Path, refuse
from fairlane.app.config.values import ConfigValues
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.settings import Settings
from fairlane.model.checking import instance
from fairlane.model.errors import ConfigError

_log: Final = getLogger("fairlane")

Options: TypeAlias = Mapping[str, tuple[str, Any]]
"""Key and value by command line option."""

IN_CODE: Final = "config= in code"
DEFAULT_FILE: Final = "fairlane.db"
"""The store in the working directory, if none is configured."""
_URL: Final[Path] = ("app", "url")


class LoadedConfig(NamedTuple):
    """A configuration that was read: effective settings, given values, and the file, if any."""

    settings: Settings
    given: Mapping[Path, GivenValue]
    file: str | None


class CommandLine(NamedTuple):
    """The file and the options that a command line gave, for a process that must be configured alike."""

    file: FilePath | None
    options: Options


class Configuration:
    """The sources of an application's settings. Creating it reads nothing."""

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
        self._read: LoadedConfig | None = None

    def use(
        self, *, file: FilePath | None = None, options: Options | None = None, is_quiet: bool = False
    ) -> None:
        """Set the file and the options of the command line, before the first use.

        For example `{"--lease": ("worker.lease", "20s")}`; texts are read like environment variables.
        `is_quiet` logs nothing: for a first look, when the application itself will read the same later.
        """
        self._file, self._options, self._is_quiet, self._read = file, options or {}, is_quiet, None

    def with_url(self, url: str) -> Configuration:
        """Return the same configuration with another store, whatever the other sources say of it."""
        other = Configuration(msgspec.structs.replace(self.code, url=url), self._config, self._environ)
        options = {name: one for name, one in self._options.items() if one[0] != ".".join(_URL)}
        other.use(file=self._file, options=options, is_quiet=True)
        return other

    @property
    def command_line(self) -> CommandLine:
        """What `use` was given."""
        return CommandLine(self._file, self._options)

    @property
    def read(self) -> LoadedConfig:
        """The configuration, read once; `ConfigError` lists every problem; then the next use reads again."""
        if self._read is None:
            self._read = self._read_all()
        return self._read

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        return self.read.settings

    def _read_all(self) -> LoadedConfig:
        environ = os.environ if self._environ is None else self._environ
        file, from_file = self._from_file(environ)
        known = [*from_file.tables, *from_file.given, *_paths_of(self.code)]
        layers = [from_file, read_environment(environ, known), self._from_command_line()]
        given = {path: one for layer in layers for path, one in layer.given.items()}
        if self.code.url is not None and _URL in given:
            _keep_url_of_code(self.code.url, given.pop(_URL))
        values = ConfigValues(given, from_file.tables, environ)
        declared = {*self.code.queues, *(path[1] for path in _below(from_file, "queues"))}
        settings = settings_over(self.code, values, declared)
        refuse([problem for layer in layers for problem in layer.problems] + values.problems)
        if settings.url is None:
            settings = msgspec.structs.replace(settings, url=_default_url(), is_default_url=True)
        if file is not None and not self._is_quiet:
            _log.info("configuration: %s", file, extra={"event": "configuration", "file": file})
        return LoadedConfig(settings, given, file)

    def _from_file(self, environ: Mapping[str, str]) -> tuple[str | None, ConfigLayer]:
        layer = ConfigLayer()
        if isinstance(self._config, Mapping):
            self._refuse_second_file(environ)
            layer.take(self._config, lambda _: IN_CODE)
            return IN_CODE, layer
        path = self._path(environ)
        if path is None:
            return None, layer
        file = read_file(path)
        layer.take(file.table, file.source)
        return file.name, layer

    def _path(self, environ: Mapping[str, str]) -> FilePath | None:
        if self._config is not None:
            self._refuse_second_file(environ)
            return FilePath(str(self._config))
        if self._file is not None:
            return self._file
        if environ.get(CONFIG):
            return FilePath(environ[CONFIG])
        default = FilePath(NAME)
        return default if default.exists() else None

    def _refuse_second_file(self, environ: Mapping[str, str]) -> None:
        if self._file is not None:
            message = "the application names its configuration in code already; remove one of the two."
            raise ConfigError(message, key="config", source="--config")
        if environ.get(CONFIG):
            _log_ignored("config", CONFIG)

    def _from_command_line(self) -> ConfigLayer:
        layer, known = ConfigLayer(), dict(all_keys())
        for option, (name, value) in self._options.items():
            path, key = tuple(name.split(".")), known.get(name)
            if key is None:
                layer.problems.append(
                    ConfigProblem(path, f"there is no such key{did_you_mean(name, list(known))}", option)
                )
                continue
            read = from_text(key.kind, value) if isinstance(value, str) else value
            layer.given[path] = GivenValue(key, read, option)
        return layer


def _paths_of(code: Settings) -> Iterator[Path]:
    yield from (("queues", name) for name in code.queues)
    yield from (("lanes", lane.name) for lane in code.lanes)
    yield from (("gates", gate.name) for gate in code.gates)
    yield from (("breakers", one.name) for one in code.breakers)
    yield from (("budgets", budget.name) for budget in code.budgets)


def _below(layer: ConfigLayer, table: str) -> Iterator[Path]:
    return (path for path in [*layer.tables, *layer.given] if len(path) > 1 and path[0] == table)


def _default_url() -> str:
    """Return the URL of the default file, with its full path: the process may change directory later."""
    try:
        return f"sqlite:///{quote(str(FilePath.cwd() / DEFAULT_FILE))}"
    except OSError as error:
        message = f"no store is configured, and the working directory does not exist: {error.strerror}"
        raise ConfigError(message, key="url") from None


def _keep_url_of_code(url: str, given: GivenValue) -> None:
    """Keep the URL of the code. A different `--url` is an error: whoever typed it expects it to be used."""
    if not given.source.startswith("--"):
        _log_ignored("url", given.source)
    elif given.value != url:
        message = (
            "the application sets its url in code, which cannot be replaced; "
            f"drop {given.source}, or look at another store without the application."
        )
        raise ConfigError(message, key="url", source=given.source)


def _log_ignored(field: str, source: str) -> None:
    # Only debug level: a variable or a file is there at every start.
    _log.debug(
        "configuration: %s is given in code, so that of %s is not used",
        *(field, source),
        extra={"event": "configuration_kept", "key": field, "source": source},
    )
