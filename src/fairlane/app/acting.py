"""Who acts, and from where: what an operator's changes are recorded with (S60). Asks no store.

The name is that of `with app.acting_as(...)`, else of the environment, else user and host.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from getpass import getuser
from typing import Final, Literal, TypeAlias

from fairlane.model.names import text_hint
from fairlane.runtime.identity import host

Origin: TypeAlias = Literal["python", "cli", "web", "api"]
"""Where a change comes from."""

ACTOR: Final = "FAIRLANE_ACTOR"
"""The environment variable that names who acts."""

_actor: Final[ContextVar[str | None]] = ContextVar("fairlane_actor", default=None)
_origin: Final[ContextVar[Origin]] = ContextVar("fairlane_origin", default="python")
_request_id: Final[ContextVar[str | None]] = ContextVar("fairlane_request_id", default=None)


@contextmanager
def as_actor(name: str) -> Generator[None]:
    """Record the changes of a block with this name; ValueError if it is blank or cannot be stored."""
    before = _actor.set(checked_actor("acting_as", name))
    try:
        yield
    finally:
        _actor.reset(before)


@contextmanager
def from_origin(origin: Origin, name: str | None = None, request_id: str | None = None) -> Generator[None]:
    """Record the changes of a block as coming from there and, if given, with this name and this request."""
    before = _origin.set(origin), _actor.set(_actor.get() if name is None else name)
    request_before = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(request_before)
        _origin.reset(before[0])
        _actor.reset(before[1])


def checked_actor(field: str, name: object) -> str:
    """Return the name of who acts.

    >>> checked_actor("--as", " ")
    Traceback (most recent call last):
        ...
    ValueError: --as: names nobody; say who acts, as in ann@example.org
    """
    hint = text_hint(name)
    if hint is None and str(name).strip():
        return str(name)
    message = f"{field}: {'names nobody; say who acts, as in ann@example.org' if hint is None else hint}"
    raise ValueError(message)


def current_actor() -> str:
    """Return who acts here: a name, or `user@host`."""
    name = _actor.get()
    if name is None and os.environ.get(ACTOR):
        name = checked_actor(ACTOR, os.environ[ACTOR])
    return name or f"{_user()}@{host()}"


def current_origin() -> Origin:
    """Return where changes come from here."""
    return _origin.get()


def current_request_id() -> str | None:
    """Return the id of the request over HTTP that changes things here; None elsewhere."""
    return _request_id.get()


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return "unknown"
