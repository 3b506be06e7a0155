"""Give each request an id, which is in its answer, in the log and in the audit."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from starlette.types import Scope

_KEY: Final = "fairlane.request_id"


def new_request_id(scope: Scope) -> Scope:
    """Return the scope of a request with an id of its own."""
    return {**scope, _KEY: uuid4().hex}


def request_id_of(scope: Scope) -> str:
    """Return the id of a request."""
    request_id: str = scope[_KEY]
    return request_id
