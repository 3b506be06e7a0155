"""Read the configuration file as TOML, with the line of each key. Checks no value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

from fairlane.app.config.sources import Path
from fairlane.model.errors import ConfigError

NAME: Final = "fairlane.toml"
"""The default file; read if it exists."""

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_KEY: Final = re.compile(rf"\s*({_DOTTED})\s*=")


class TomlFile(NamedTuple):
    """A file's name, its content, and the line of each key."""

    name: str
    table: Mapping[str, Any]
    lines: Mapping[Path, int]

    def source(self, path: Path) -> str:
        """Return the file and the line of a key, or of the table around it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return f"{self.name}:{self.lines[path[:end]]}"
        return self.name


def read_file(path: FilePath) -> TomlFile:
    """Read a file; `ConfigError` names it and the line of a syntax error, but shows none of its content."""
    name = str(path)
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigError("there is no such file.", key="config", source=name) from None
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}.", key="config", source=name) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"it is not UTF-8 at byte {error.start}.", key="config", source=name) from None
    try:
        return TomlFile(name, tomllib.loads(text), lines_of(text))
    except (ValueError, RecursionError) as error:  # also for a number with thousands of digits
        place = re.search(r"\(at .*\)", str(error))
        message = f"it is not valid TOML {place.group()}" if place else "it is not valid TOML"
        raise ConfigError(f"{message}.", key="config", source=name) from None


def lines_of(text: str) -> dict[Path, int]:
    r"""Return the line of each table and key, found by regular expressions: good enough for messages.

    >>> lines_of('[worker]\nlease = 5\n[tenants."*"]\nlimits.bulk = {}')
    {('worker',): 1, ('worker', 'lease'): 2, ('tenants', '*'): 3, ('tenants', '*', 'limits', 'bulk'): 4}
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            table = _parts(header[1])
            lines.setdefault(table, number)
        elif key:
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
