"""`/users`: who may sign in with a password. Nobody gives away more than they have (S79)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fairlane.app.access.passwords import LEAST_CHARS, MOST_CHARS
from fairlane.app.access.views import User
from fairlane.app.did_you_mean import did_you_mean
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup
from fairlane.web.problem import HttpProblem
from fairlane.web.reading import bad_field

USERS: Final = EndpointGroup("users", "Users: who may sign in with a password, with which role and tenant.")

Password = Annotated[
    str,
    Meta(min_length=LEAST_CHARS, max_length=MOST_CHARS, extra_json_schema={"format": "password"}),
]
Grants = Annotated[
    Sequence[str], Meta(description="Single actions beside those of the role: names of endpoints.")
]


class UserList(msgspec.Struct, frozen=True):
    """All users, by name."""

    items: Sequence[User]


class UserAddBody(Change, frozen=True, kw_only=True):
    """A new user. With a `tenant`, nothing of other tenants exists for it."""

    name: str
    password: Password
    role: Role
    tenant: str | None = None
    grants: Grants = ()


class UserSetBody(Change, frozen=True, kw_only=True):
    """Changes of a user. What is left out stays. `all_tenants` and `no_grants` take away what it has."""

    password: Password | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    tenant: str | UnsetType = UNSET
    all_tenants: bool = False
    grants: Grants | UnsetType = UNSET
    no_grants: bool = False
    disabled: bool | UnsetType = UNSET


@USERS.get("/users", "users.find", least=Role.ADMIN, tenants="all")
async def find(call: WebCall) -> UserList:
    """Return all users by name: role, tenant, grants, and when each was last seen."""
    return UserList(await call.app.users.alist())


@USERS.get("/users/{user}", "users.get", least=Role.ADMIN, tenants="all")
async def get(call: WebCall, user: str) -> User:
    """Return one user."""
    return await call.app.users.aget(user)


@USERS.post("/users", "users.add", least=Role.ADMIN, tenants="all", status=201, done="The user is added.")
async def add(call: WebCall, body: UserAddBody) -> User:
    """Add a user. The password is kept as a hash, and is in no log and no audit."""
    check_role(call, body.role)
    check_grants(call, body.grants)
    return await call.app.users.aadd(
        body.name,
        password=body.password,
        role=body.role,
        tenant=body.tenant,
        grants=body.grants,
        note=body.note,
    )


@USERS.patch("/users/{user}", "users.set", least=Role.ADMIN, tenants="all", done="User {user} is changed.")
async def set_(call: WebCall, user: str, body: UserSetBody) -> User:
    """Change a user. It holds at the user's next request; a new password ends its sessions."""
    if body.all_tenants and not isinstance(body.tenant, UnsetType):
        raise bad_field("tenant", "is given together with all_tenants", "give one of them")
    if body.no_grants and not isinstance(body.grants, UnsetType):
        raise bad_field("grants", "is given together with no_grants", "give one of them")
    check_role(call, (await call.app.users.aget(user)).role)
    changes: dict[str, Any] = {
        "password": body.password,
        "role": body.role,
        "tenant": None if body.all_tenants else body.tenant,
        "grants": () if body.no_grants else body.grants,
        "disabled": body.disabled,
    }
    if not isinstance(body.role, UnsetType):
        check_role(call, body.role)
    if not isinstance(body.grants, UnsetType):
        check_grants(call, body.grants)
    return await call.app.users.aset(user, note=body.note, **changes)


@USERS.delete("/users/{user}", "users.remove", least=Role.ADMIN, tenants="all", done="User {user} is gone.")
async def remove(call: WebCall, user: str, body: Change) -> User:
    """Remove a user and end its sessions. Returns the user as it was."""
    found = await call.app.users.aget(user)
    check_role(call, found.role)
    await call.app.users.aremove(user, note=body.note)
    return found


def check_role(call: WebCall, role: Role) -> None:
    """Refuse to give, or to touch, a role above the caller's own: a granted action is no way up."""
    if not call.principal.role.includes(role):
        raise HttpProblem(403, "forbidden", f"this concerns the role {role.value}, which is above your own")


def check_grants(call: WebCall, grants: Sequence[str]) -> None:
    """Refuse actions that do not exist, and those that the caller may not do itself."""
    known = call.site.endpoints
    for name in grants:
        if name not in known:
            message = f"{name[:60]!r} is not an action{did_you_mean(name, list(known))}"
            raise bad_field("grants", message, "name an endpoint, as in queues.pause")
        if not call.may(name):
            raise HttpProblem(403, "forbidden", f"you may not do {name} yourself")
