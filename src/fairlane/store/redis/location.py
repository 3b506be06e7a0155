"""The address of an installation's server: one, the first of several that answers, or where it has moved.

Connects to nothing. A cluster or Sentinel may move the installation; the client reports that here.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from fairlane.model.errors import ConfigError
from fairlane.store.redis.keys import KeyNames
from fairlane.store.urls import options_of, split_server_url

SENTINEL: Final = "+sentinel"
"""How the scheme of a URL ends that names Sentinels: `redis+sentinel`."""
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_OWN: Final = frozenset({"prefix", "replicas"})
_SENTINELS: Final = frozenset({"sentinel_username", "sentinel_password"})
_TLS: Final = frozenset(
    {"ssl_keyfile", "ssl_certfile", "ssl_cert_reqs", "ssl_ca_certs", "ssl_ca_path", "ssl_ca_data"}
    | {"ssl_check_hostname", "ssl_min_version", "ssl_ciphers", "ssl_password"}
)
_LIBRARY: Final = frozenset({"db", "username", "password", "client_name", "health_check_interval"})
"""Other options that go to the client library; we set all else that it knows ourselves."""
_NUMBERS: Final = ("db", "health_check_interval", "ssl_min_version", "replicas")
_ALLOWED: Final = (
    "redis://user:password@host:6379/0?prefix=fairlane&replicas=0, rediss:// for TLS with ssl_ca_certs=…, "
    "unix:///run/redis.sock?db=0, redis+sentinel://host:26379/service"
)
_DATABASE: Final = re.compile(r"/?[0-9]{0,4}/?")


class Location:
    """The URL of a server: one address or several between commas, and some options of ours.

    All keys begin with `prefix`. `replicas` is how many replicas must have an enqueue before it is confirmed.
    `sentinel_username` and `sentinel_password` are for the Sentinels, user and password of the URL for the
    server.
    """

    def __init__(self, url: str) -> None:
        """Take our options out of the URL; the client library gets the rest."""
        self._parts = split_server_url(url, _ALLOWED)
        options = options_of(self._parts, _OWN | _SENTINELS | _TLS | _LIBRARY, _ALLOWED)
        self._scheme, is_watched, _ = self._parts.scheme.partition(SENTINEL)
        _check(options, self._scheme, is_watched=bool(is_watched))
        prefix = options.pop("prefix", "fairlane")
        if not _PREFIX.fullmatch(prefix):
            raise ConfigError("prefix is 1 to 64 of A-Z a-z 0-9 _ . : -", key="url")
        self.keys = KeyNames(prefix)
        self.replicas = int(options.pop("replicas", "0"))
        user, password = (
            quote(options.pop(f"sentinel_{name}", ""), safe="") for name in ("username", "password")
        )
        self._sentinel_user = f"{user}:{password}@" if user or password else ""
        self._query = urlencode(options)
        self._user, self._at, places = self._parts.netloc.rpartition("@")
        self._places = places.split(",")
        self.service: str | None = None
        path = self._parts.path
        if is_watched:
            self.service, _, database = path.strip("/").partition("/")
            path = f"/{database}"
            if not self.service:
                raise ConfigError(
                    "a Sentinel URL names its service: redis+sentinel://host/service", key="url"
                )
        if self._scheme != "unix" and not _DATABASE.fullmatch(unquote(path)):
            message = (
                "what follows the host is the number of a database, as in redis://host:6379/0; "
                "for a service under Sentinel write redis+sentinel://."
            )
            raise ConfigError(message, key="url", allowed=_ALLOWED)
        self._path = path
        self.url: str | None = None if self.service else self._url_at(self._places[0])

    def __str__(self) -> str:
        """Return the address for people, without secrets."""
        return ",".join(self._places) if self._places != [""] else self._parts.path

    def sentinels(self) -> list[str]:
        """Return the URLs of the Sentinels."""
        # The options of TLS hold for Sentinels too; others may be meant for the server only.
        query = self._query if self._scheme == "rediss" else ""
        places = (self._sentinel_user + place for place in self._places)
        return [urlunsplit((self._scheme, place, "", query, "")) for place in places]

    def moved(self, host: str, port: int) -> None:
        """Note that the server is at another address; without a host, at another port of the same host."""
        if not host and self.url is not None:
            host = urlsplit(self.url).hostname or ""
        self.url = self._url_at(f"{host}:{port}")

    def failed(self, url: str) -> None:
        """Note that no primary answers at an address: the next call goes to another one."""
        if url != self.url:
            return  # noticed before
        if self.service:
            self.url = None
            return
        urls = [self._url_at(place) for place in self._places]
        following = urls.index(url) + 1 if url in urls else 0
        self.url = urls[following % len(urls)]

    def _url_at(self, place: str) -> str:
        return urlunsplit((self._scheme, self._user + self._at + place, self._path, self._query, ""))


def _check(options: dict[str, str], scheme: str, *, is_watched: bool) -> None:
    """Raise for options that mean nothing here, or that the client library cannot read."""
    for name in options:
        if name in _SENTINELS and not is_watched:
            raise ConfigError(f"{name} needs redis+sentinel://; drop it.", key="url", allowed=_ALLOWED)
        if name in _TLS and scheme != "rediss":
            raise ConfigError(f"{name} needs TLS: write rediss://.", key="url", allowed=_ALLOWED)
    for name in _NUMBERS:
        if name in options and not re.fullmatch("[0-9]{1,9}", options[name]):
            raise ConfigError(f"{name} is a whole number.", key="url", allowed=_ALLOWED)
