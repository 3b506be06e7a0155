"""Declare the pages of the dashboard: a path, who may see it, what its query may say, and a template.

A new noun is one file in `pages/` with a `PageGroup`, one template for each page in `templates/<noun>/` that
extends `base.html`, and one line in `PAGES`:

    PAGES_OF_GATES = PageGroup("Gates", section="machinery", icon="guards")

    @PAGES_OF_GATES.page("/gates", "gates")
    async def gates(call: WebCall) -> PageView:
        return PageView("gates/list.html", {"gates": await call.app.gates.alist()})

The first page of a group is the one that the navigation leads to. Whoever may not see it does not see the
entry. `html.rendering` says what templates are given.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_type_hints

import msgspec
from starlette.responses import Response

from fairlane.model.access import Role
from fairlane.web.declare import Body, Least, Tenants

if TYPE_CHECKING:  # it knows the site, which knows pages
    from fairlane.web.call import WebCall

Section: TypeAlias = Literal["start", "work", "machinery", "watch"]
"""Where the navigation lists a noun."""

PageMethod: TypeAlias = Literal["GET", "POST"]


class PageView(msgspec.Struct, frozen=True):
    """What a page shows: a template and its values.

    An element of the template that has an id and `data-live` is kept current without a reload. It must not
    be inside another one, and it holds no text that changes by itself: ages are written with `ago(...)`.
    """

    template: str
    values: Mapping[str, Any]
    status: int = 200


PageHandler: TypeAlias = Callable[..., Awaitable[PageView | Response]]
"""Returns a view, or a response that it makes itself, as a stream does."""

Badge: TypeAlias = "Callable[[WebCall], Awaitable[int]]"
H = TypeVar("H", bound=PageHandler)


class WebPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page. `query` is the type of what its URL may say: all its state, beside `fields` of its path.

    A page with the method POST does something before it is shown, and so is not one to come back to: `query`
    is then the type of the form that leads to it, and nothing of it is kept current. What is not `limited`
    may take longer than `web.statement_limit`, because it waits for others or reads everything. It must be a
    POST: a page that is kept current is made again and again.
    """

    name: str
    path: str
    least: Least
    tenants: Tenants
    handler: PageHandler
    fields: Mapping[str, Any]
    query: type[Body] | None
    method: PageMethod = "GET"
    limited: bool = True


class PageGroup:
    """The pages of one noun, and its entry in the navigation.

    `icon` names a symbol `i-…` of `icons.svg`. `key` is the letter that leads there after `g`. `badge` counts
    what waits for a person; it is asked on every page, so it must be answered from counters.
    """

    def __init__(
        self, label: str, *, section: Section, icon: str, key: str = "", badge: Badge | None = None
    ) -> None:
        self.label = label
        self.section: Section = section
        self.icon = icon
        self.key = key
        self.badge = badge
        self.pages: list[WebPage] = []

    def __iter__(self) -> Iterator[WebPage]:
        return iter(self.pages)

    @property
    def landing(self) -> WebPage:
        """The page that the navigation leads to."""
        return self.pages[0]

    def page(
        self,
        path: str,
        name: str,
        *,
        least: Least = Role.VIEWER,
        tenants: Tenants = "own",
        method: PageMethod = "GET",
        limited: bool = True,
    ) -> Callable[[H], H]:
        """Declare a page. Its first parameter is the `WebCall`, the others as for an endpoint."""

        def declare(handler: H) -> H:
            if method == "GET" and not limited:
                raise TypeError(f"{name}: a page that is kept current must not wait for others")
            _, *parameters = inspect.signature(handler).parameters  # the first one is the call
            hints = {parameter: get_type_hints(handler)[parameter] for parameter in parameters}
            query = hints.pop("query", None)
            self.pages.append(
                WebPage(
                    name=name,
                    path=path,
                    least=least,
                    tenants=tenants,
                    handler=handler,
                    fields=hints,
                    query=query,
                    method=method,
                    limited=limited,
                )
            )
            return handler

        return declare
