"""Make the operation that travels with an operator's change and is appended to the audit with it (S60)."""

from __future__ import annotations

from typing import Any

from fairlane.app.acting import current_origin, current_request_id
from fairlane.app.admin.validation import actor
from fairlane.app.ambient import current_ambient
from fairlane.model.journal.operations import Operation


def operation(action: str, *, who: str | None = None, note: str = "", **details: Any) -> Operation | None:
    """Return what is done, by whom, from where and why; None inside a handler, which is no operator.

    An operation of an HTTP request has the id of the request in its details.

    >>> done = operation("queues.pause", who="ann", note="moving", until=None)
    >>> (done.actor, done.origin, done.note, done.details) if done else None
    ('ann', 'python', 'moving', {})
    """
    caller = current_ambient()
    if caller is not None and caller.is_handler:
        return None
    details["request_id"] = current_request_id()
    known = {name: value for name, value in details.items() if value is not None}
    return Operation(action=action, actor=actor(who), origin=current_origin(), note=note, details=known)
