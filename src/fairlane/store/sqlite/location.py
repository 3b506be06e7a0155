"""What a URL says of a file: where it is, how durable its writes are, and whose it is."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from fairlane.model.errors import ConfigError

_SYNCHRONOUS: Final = {"full": "FULL", "normal": "NORMAL"}


class Location:
    """Where a store's file is, how durable and whose, from `sqlite:///path?synchronous=full|normal&group=name`."""

    def __init__(self, url: str) -> None:
        """Read the URL: three slashes for a relative path, four for an absolute one."""
        parts = urlsplit(url)
        if parts.netloc or not parts.path.strip("/"):
            message = "it names no file."
            raise ConfigError(message, key="url", allowed="sqlite:///relative.db or sqlite:////absolute.db")
        self.path = Path(unquote(parts.path[1:])).absolute()
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        wanted = options.pop("synchronous", "full")
        group = options.pop("group", None)
        if wanted not in _SYNCHRONOUS or options:
            message = "it has options that are not known."
            allowed = "?synchronous=full or ?synchronous=normal, ?group=name"
            raise ConfigError(message, key="url", allowed=allowed)
        self.synchronous = _SYNCHRONOUS[wanted]
        self.group = None if group is None else _group_number(group)


def _group_number(name: str) -> int:
    """Give the number of a group that this user may give files to."""
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
