"""Read a store's URL: its file, how durable its writes are, which group shares it. Opens nothing."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from fairlane.model.errors import ConfigError
from fairlane.store.urls import options_of

_SYNCHRONOUS: Final = {"full": "FULL", "normal": "NORMAL"}
_FORM: Final = "sqlite:///relative.db or sqlite:////absolute.db"
_OPTIONS: Final = "?synchronous=full or ?synchronous=normal, ?group=name; in a path, write ? as %3F"
_NO_MEMORY: Final = (
    "a store in memory would be lost with its connection, and no worker could see it; name a file. "
    "For tests, fairlane.testing.Trial(app) makes one that is gone afterwards."
)


class Location:
    """The parts of `sqlite:///path?synchronous=full|normal&group=name`."""

    def __init__(self, url: str) -> None:
        """Read the URL: three slashes for a relative path, four for an absolute one."""
        if ":memory:" in unquote(url) or "mode=memory" in url:
            raise ConfigError(_NO_MEMORY, key="url", allowed=_FORM)
        try:
            parts = urlsplit(url)
        except ValueError:
            raise ConfigError("it cannot be read.", key="url", allowed=_FORM) from None
        if parts.netloc:
            message = "it names no file: a path begins after three slashes, an absolute one has a fourth."
            raise ConfigError(message, key="url", allowed=_FORM)
        if not parts.path.strip("/"):
            raise ConfigError("it names no file.", key="url", allowed=_FORM)
        path = unquote(parts.path[1:])
        if "#" in url or "\0" in path:
            raise ConfigError("in a path, write # as %23 and ? as %3F.", key="url", allowed=_FORM)
        self.path = Path(path).absolute()
        options = options_of(parts, ("synchronous", "group"), _OPTIONS)
        wanted = options.get("synchronous", "full")
        if wanted not in _SYNCHRONOUS:
            raise ConfigError(f"synchronous={wanted!r} is not known.", key="url", allowed=_OPTIONS)
        self.synchronous = _SYNCHRONOUS[wanted]
        self.group = _group_number(options["group"]) if "group" in options else None


def access_problem(file: str) -> str:
    """Return what keeps this user from writing to a file, as far as the system tells; "" if nothing does.

    Readers need to write as well: SQLite keeps its log and its list of readers beside the file.
    """
    path = Path(file)
    if not file:
        return ""
    try:
        is_mounted_for_reading = bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return ""
    if is_mounted_for_reading:
        return "its file system is read-only, and SQLite writes beside the file even to read it"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"this user may not write to its folder {path.parent}, where SQLite keeps its log"
    return "" if os.access(path, os.R_OK | os.W_OK) else "this user may not read and write it"


def _group_number(name: str) -> int:
    """Return the id of a group to which this user may give files."""
    own = {os.getegid(), *os.getgroups()}
    allowed = "a group of this user: " + ", ".join(sorted(_group_names(own)))
    try:
        number = grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(f"there is no group {name!r}.", key="url", allowed=allowed) from None
    if number not in own and os.geteuid() != 0:
        raise ConfigError(f"this user is not in group {name!r}.", key="url", allowed=allowed)
    return number


def _group_names(numbers: set[int]) -> Iterator[str]:
    for number in numbers:
        with suppress(KeyError):  # a number without a name
            yield grp.getgrgid(number).gr_name
