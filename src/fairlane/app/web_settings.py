"""The settings of the web: the table `[web]` of fairlane.toml. Checks nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.access import Role
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.limits import Rate

REQUEST_RATE: Final = Rate(600, "minute", burst=100)


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the web is served, whom it believes, and how much one caller may ask.

    `fairlane web` listens at `host` and `port`, and serves everything below `prefix`. Requests must name
    `host`, one of `allowed_hosts`, or the loopback. What `trusted_proxies` say of their clients is believed:
    the address and the scheme; and, in `user_header`, who the user is, with the rights that the store has of
    it, or as `user_header_role` if it has none. `basic_auth`: requests may bring name and password each time.
    A caller makes requests at most at this `rate`; a body has at most `max_body` bytes; what only reads has
    `statement_limit`. Pages are read from `replica_url`, if there is one. `secret` signs what one page tells
    the next.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    prefix: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    basic_auth: bool = False
    user_header: str | None = None
    user_header_role: Role | None = None
    see_dead_letters: Role = Role.MANAGER
    review_dead_letters: Role = Role.MANAGER
    rate: Rate | None = REQUEST_RATE
    max_body: int = 20 * 1_048_576
    statement_limit: Micros = 2 * SECOND
    replica_url: str | None = None
    secret: str | None = None

    def __repr__(self) -> str:
        """Show no secret and no URL."""
        return f"<WebSettings for {self.host}:{self.port}>"
