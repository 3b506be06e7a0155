"""Check the arguments of changes of access: a ValueError names the field, the problem and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from fairlane.app.admin.validation import name_of
from fairlane.app.enqueue.checks import LONGEST_WAIT, ProblemList, duration, kind_of
from fairlane.model.access import Role
from fairlane.model.instants import SECOND, Micros
from fairlane.model.names import invalid_name, label_hint, tenant_hint

_GRANT: Final = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")
_SHOWN: Final = 60


def user_name(name: object) -> str:
    """Return the name of a user: like a tenant's, which an address of mail is.

    >>> user_name("ann@example.org")
    'ann@example.org'
    """
    hint = tenant_hint(name)
    if hint is not None:
        raise invalid_name("name", name, hint)
    return str(name)


def token_name(name: object) -> str:
    """Return the name of a token: what it is for."""
    hint = label_hint(name)
    if hint is not None:
        raise invalid_name("name", name, hint)
    return str(name)


def role_of(role: object) -> Role:
    """Return a role.

    >>> role_of("boss")
    Traceback (most recent call last):
        ...
    ValueError: role: 'boss' is not a role; use viewer, operator, manager or admin
    """
    if isinstance(role, str) and role in set(Role):
        return Role(role)
    shown = repr(role[:_SHOWN]) if isinstance(role, str) else f"a value of type {kind_of(role)}"
    message = f"role: {shown} is not a role; use viewer, operator, manager or admin"
    raise ValueError(message)


def tenant_of(tenant: object) -> str | None:
    """Return the tenant that somebody is bound to, or None."""
    return None if tenant is None else name_of("tenant", tenant)


def grants_of(grants: object) -> tuple[str, ...]:
    """Return the names of single actions, each once and in order.

    >>> grants_of(["queues.pause", "jobs.cancel", "jobs.cancel"])
    ('jobs.cancel', 'queues.pause')
    """
    if isinstance(grants, str) or not isinstance(grants, Sequence | set | frozenset):
        message = f"grants: is of type {kind_of(grants)}; give a list of actions, as ['queues.pause']"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    names = cast("Sequence[object]", grants)
    for name in names:
        if not isinstance(name, str) or not _GRANT.fullmatch(name):
            message = f"grants: {str(name)[:_SHOWN]!r} is not an action; name it as in queues.pause"
            raise ValueError(message)
    return tuple(sorted({str(name) for name in names}))


def lifetime_of(field: str, value: object) -> Micros:
    """Return how long something is valid: a second or more."""
    problems = ProblemList(0)
    found = duration(problems, field, value, SECOND, LONGEST_WAIT)
    if problems.found:
        (problem,) = problems.found
        message = f"{field}: {problem.message}; {problem.hint}"
        raise ValueError(message)
    return found
