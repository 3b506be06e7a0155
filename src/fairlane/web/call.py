"""One request of a caller who is known: what the handlers of endpoints and pages are given."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from fairlane.app.acting import Origin, from_origin
from fairlane.app.fairlane import Fairlane
from fairlane.model.access import Principal
from fairlane.web.forms.flash import COOKIE, Flash

if TYPE_CHECKING:  # they know endpoints and pages, whose handlers know this
    from fairlane.web.page import WebPage
    from fairlane.web.site import Site


class WebCall(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for what. `request_id` is in the answer, in the log and in the audit.

    `is_for_page`: the answer is a page, which may be read from a replica.
    """

    site: Site
    principal: Principal
    request: Request
    request_id: str
    is_for_page: bool = False

    @property
    def app(self) -> Fairlane:
        """The application whose jobs are shown. Its calls are scoped to the caller's tenant."""
        return self.site.reader if self.is_for_page else self.site.app

    @property
    def flash(self) -> Flash | None:
        """What the form did that led here, to be shown once; None without one."""
        return self.site.flashes.read(self.request.cookies.get(COOKIE))

    def may(self, name: str) -> bool:
        """Whether the caller may use an endpoint: pages show and disable their buttons by it."""
        return self.site.may(self.principal, name)

    def may_see(self, page: WebPage) -> bool:
        """Whether the caller may open a page."""
        least = self.site.least_role(page.least)
        return self.site.is_there(self.principal, page.tenants) and self.principal.may(page.name, least)

    @contextmanager
    def acting(self, origin: Origin) -> Generator[None]:
        """Act as the caller: changes are recorded with its name, and only its tenant's things exist."""
        with ExitStack() as stack:
            stack.enter_context(from_origin(origin, self.principal.name, self.request_id))
            if self.principal.tenant is not None:
                stack.enter_context(self.site.app.tenant(self.principal.tenant))
            yield
