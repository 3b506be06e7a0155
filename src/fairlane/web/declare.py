"""Declare endpoints: one declaration gives the route, its permission, its types and its documentation.

The permission matrix of the tests and the OpenAPI document are made from the same declarations.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_type_hints

import msgspec

from fairlane.model.access import Role

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Tenants: TypeAlias = Literal["own", "all"]
"""`own`: a caller of one tenant uses it within that tenant. `all`: for such a caller it is not there."""

Least: TypeAlias = Role | Literal["see_dead_letters", "review_dead_letters"]
"""The least role of an endpoint, or the key of `[web]` that says which one it is."""

Handler: TypeAlias = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)

_FIELD: Final = re.compile(r"{(\w+)(?::\w+)?}")
_SAFE: Final = frozenset({"GET"})


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request sends: its JSON, or its query. Fields that it does not have are refused."""


class Change(Body, frozen=True, kw_only=True):
    """What a request sends that changes something: also why. The note is audited."""

    note: str = ""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint. Its `name` is its permission, as grants spell it, and the form that a page sends to it.

    `fields` are the types of what stands in braces in its path. `query` and `body` are the types of what it
    takes, `reply` of what it returns; None for a response that it makes itself, of the type `produces`.
    `done` is what a person reads afterwards, with fields of the path in braces. `leads_to` is the page that
    comes after its form, with fields of the reply in braces; empty: the one that the form names. What is not
    `limited` may read for longer than `web.statement_limit`, because it waits for others or reads everything.
    With `takes`, the request is no JSON but a file of this type, which the handler reads itself.
    """

    name: str
    method: Method
    path: str
    least: Least
    tenants: Tenants
    handler: Handler
    summary: str
    about: str
    fields: Mapping[str, Any]
    query: type[Body] | None = None
    body: type[Body] | None = None
    reply: Any = None
    produces: str = "application/json"
    status: int = 200
    done: str = ""
    leads_to: str = ""
    limited: bool = True
    takes: str = ""

    @property
    def is_change(self) -> bool:
        """Whether it may change something."""
        return self.method not in _SAFE

    @property
    def has_form(self) -> bool:
        """Whether a form of a page can send it."""
        return self.is_change and not self.takes


class EndpointGroup:
    """The endpoints of one noun, in the order of their declaration."""

    def __init__(self, noun: str, about: str) -> None:
        self.noun = noun
        self.about = about
        self.endpoints: list[Endpoint] = []

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self.endpoints)

    def endpoint(
        self,
        method: Method,
        path: str,
        name: str,
        *,
        least: Least = Role.VIEWER,
        tenants: Tenants = "own",
        status: int = 200,
        produces: str = "application/json",
        done: str = "",
        leads_to: str = "",
        limited: bool = True,
        takes: str = "",
    ) -> Callable[[H], H]:
        """Declare an endpoint below `/api/v1`; its types are those of the function's parameters.

        The first parameter is the `WebCall`; those named in the path come from there; `query` and `body` are
        read as their types say. The first line of the docstring is the summary.
        """

        def declare(handler: H) -> H:
            hints = get_type_hints(handler)
            reply = hints.pop("return", None)
            names = _FIELD.findall(path)
            missing = [name for name in names if name not in hints]
            if missing:
                raise TypeError(f"{name}: the path names {missing}, and the function takes no such argument")
            unknown = [name for name in _FIELD.findall(done) if name not in names]
            if unknown:
                raise TypeError(f"{name}: `done` names {unknown}, which the path does not")
            summary, _, about = inspect.cleandoc(handler.__doc__ or "").partition("\n")
            self.endpoints.append(
                Endpoint(
                    name=name,
                    method=method,
                    path=path,
                    least=least,
                    tenants=tenants,
                    handler=handler,
                    summary=summary,
                    about=about.strip(),
                    fields={name: hints[name] for name in names},
                    query=hints.get("query"),
                    body=hints.get("body"),
                    reply=None if produces != "application/json" else reply,
                    produces=produces,
                    status=status,
                    done=done,
                    leads_to=leads_to,
                    limited=limited,
                    takes=takes,
                )
            )
            return handler

        return declare

    def get(self, path: str, name: str, **options: Any) -> Callable[[H], H]:
        """Declare an endpoint that reads."""
        return self.endpoint("GET", path, name, **options)

    def post(self, path: str, name: str, **options: Any) -> Callable[[H], H]:
        """Declare an endpoint that does something."""
        return self.endpoint("POST", path, name, **options)

    def patch(self, path: str, name: str, **options: Any) -> Callable[[H], H]:
        """Declare an endpoint that changes something."""
        return self.endpoint("PATCH", path, name, **options)

    def delete(self, path: str, name: str, **options: Any) -> Callable[[H], H]:
        """Declare an endpoint that removes something."""
        return self.endpoint("DELETE", path, name, **options)
