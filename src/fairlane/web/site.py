"""What all requests of one mounted web application share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from fairlane.app.fairlane import Fairlane
from fairlane.app.replica import ReplicaReader
from fairlane.app.web_settings import WebSettings
from fairlane.model.access import Principal, Role
from fairlane.runtime.clock import MachineClock
from fairlane.web.access.authorization import is_basic, is_token
from fairlane.web.declare import Endpoint, Least, Tenants
from fairlane.web.forms.flash import FlashSigner
from fairlane.web.http.proxies import is_proxied
from fairlane.web.http.rates import CallerRates
from fairlane.web.locations import SIGN_IN, prefix_of
from fairlane.web.page import PageGroup
from fairlane.web.problem import SignedOut

Authenticate: TypeAlias = Callable[[Request], Awaitable[Principal | None]]
"""Returns who makes a request; None for nobody."""


class Site:
    """One application, its endpoints by name, its pages, and how callers are known.

    Pages of which nobody is known lead to `sign_in`; else to the own sign-in page, if it `has_sign_in`.
    """

    def __init__(
        self,
        app: Fairlane,
        endpoints: Mapping[str, Endpoint],
        authenticate: Authenticate,
        pages: Sequence[PageGroup] = (),
        *,
        sign_in: str | None = None,
        has_sign_in: bool = False,
    ) -> None:
        self.app = app
        self.endpoints = endpoints
        self.authenticate = authenticate
        self._sign_in = sign_in
        self._has_sign_in = has_sign_in
        self.pages = pages
        self.rates = CallerRates(MachineClock().elapsed)

    @property
    def settings(self) -> WebSettings:
        """The table `[web]`, read at the first request."""
        return self.app.settings.web

    @cached_property
    def flashes(self) -> FlashSigner:
        """What signs the messages from one page to the next."""
        return FlashSigner(self.settings.secret)

    @cached_property
    def reader(self) -> Fairlane:
        """The application that pages read from: on the replica, if there is one."""
        url = self.settings.replica_url
        return self.app if url is None else ReplicaReader(self.app, url)

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """The hosts that requests may name, beside the loopback's names."""
        settings = self.settings
        return (*settings.allowed_hosts, settings.host)

    def is_ambient(self, scope: Scope) -> bool:
        """Whether a browser may have added the caller's credentials without its user's doing."""
        headers = Headers(scope=scope)
        authorization = headers.get("authorization", "")
        is_proxys = is_proxied(scope) and not is_token(authorization)
        return "cookie" in headers or is_basic(authorization) or is_proxys

    def signed_out(self, scope: Scope) -> SignedOut:
        """Return the answer to a request of nobody: where to sign in, and with what."""
        is_own = self._sign_in is None and self._has_sign_in
        place = prefix_of(scope) + SIGN_IN if is_own else self._sign_in
        challenge = (
            'Bearer, Basic realm="fairlane", charset="UTF-8"' if self.settings.basic_auth else "Bearer"
        )
        return SignedOut(place, is_own=is_own, challenge=challenge)

    def least_role(self, least: Least) -> Role:
        """Return the least role that a declaration asks for."""
        if isinstance(least, Role):
            return least
        settings = self.settings
        return settings.see_dead_letters if least == "see_dead_letters" else settings.review_dead_letters

    def may(self, principal: Principal, name: str) -> bool:
        """Whether a caller may use the endpoint of this name; nobody may use one that does not exist."""
        endpoint = self.endpoints.get(name)
        return (
            endpoint is not None
            and self.is_there(principal, endpoint.tenants)
            and principal.may(name, self.least_role(endpoint.least))
        )

    def is_there(self, principal: Principal, tenants: Tenants) -> bool:
        """Whether what is for these tenants exists for a caller."""
        return tenants == "own" or principal.tenant is None
