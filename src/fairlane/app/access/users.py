"""`app.users`: who may sign in with a password, with which role, for which tenant (S79)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.access.checks import grants_of, role_of, tenant_of, user_name
from fairlane.app.access.passwords import checked_password, hash_password
from fairlane.app.access.records import AccessRecords, FoundRecord
from fairlane.app.access.views import User, user_view
from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, flag_of, text_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.access import Role
from fairlane.model.access_errors import UserExists, UserNotFound
from fairlane.model.access_records import AccessKey, UserRecord
from fairlane.store.contract.access import AccessChange

NOT_INSIDE = "users, tokens and sessions concern all tenants"


class Users:
    """The users of a store. Each method has an async twin whose name starts with `a`.

    Changes are audited with the `note`; no password is. They hold at the user's next request.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._records = AccessRecords(client)

    def list(self) -> Sequence[User]:
        """Return all users by name."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[User]:
        """Return all users by name."""
        scope_of_all(NOT_INSIDE)
        rows = await self._records.all("user")
        return tuple(user_view(row, row.record) for row in rows if isinstance(row.record, UserRecord))

    def get(self, name: str) -> User:
        """Return a user; `UserNotFound` if there is none of this name."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> User:
        """Return a user; `UserNotFound` if there is none of this name."""
        scope_of_all(NOT_INSIDE)
        found = await self._found(user_name(name))
        return user_view(found.row, found.record)

    def add(
        self,
        name: str,
        *,
        password: str,
        role: Role | str,
        tenant: str | None = None,
        grants: Sequence[str] = (),
        note: str = "",
    ) -> User:
        """Add a user; `UserExists` if there is one of this name.

        With a `tenant`, nothing of other tenants exists for the user. `grants` are single actions beside
        those of the role, as `queues.pause`. A password has 12 characters or more.
        """
        return self._client.portal.run(
            self.aadd(name, password=password, role=role, tenant=tenant, grants=grants, note=note)
        )

    async def aadd(
        self,
        name: str,
        *,
        password: str,
        role: Role | str,
        tenant: str | None = None,
        grants: Sequence[str] = (),
        note: str = "",
    ) -> User:
        """Add a user; see `add`."""
        scope_of_all(NOT_INSIDE)
        user = UserRecord(
            name=user_name(name),
            role=role_of(role),
            tenant=tenant_of(tenant),
            grants=grants_of(grants),
            password_hash="",
            created_by=actor(None),
        )
        done = operation("users.add", note=text_of("note", note))
        hashed = await hash_password(checked_password(password))
        if not await self._records.add(msgspec.structs.replace(user, password_hash=hashed), done):
            raise UserExists(user.name)
        return await self.aget(name)

    def set(
        self,
        name: str,
        *,
        password: str | UnsetType = UNSET,
        role: Role | str | UnsetType = UNSET,
        tenant: str | UnsetType | None = UNSET,
        grants: Sequence[str] | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        note: str = "",
    ) -> User:
        """Change a user; what is left out stays. `UserNotFound` if there is none of this name.

        A new password ends all its sessions. A disabled user cannot sign in and has no sessions.
        """
        return self._client.portal.run(
            self.aset(
                name,
                password=password,
                role=role,
                tenant=tenant,
                grants=grants,
                disabled=disabled,
                note=note,
            )
        )

    async def aset(
        self,
        name: str,
        *,
        password: str | UnsetType = UNSET,
        role: Role | str | UnsetType = UNSET,
        tenant: str | UnsetType | None = UNSET,
        grants: Sequence[str] | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        note: str = "",
    ) -> User:
        """Change a user; see `set`."""
        scope_of_all(NOT_INSIDE)
        key = user_name(name)
        values = {
            "role": role if isinstance(role, UnsetType) else role_of(role),
            "tenant": tenant if isinstance(tenant, UnsetType) else tenant_of(tenant),
            "grants": grants if isinstance(grants, UnsetType) else grants_of(grants),
            "disabled": disabled if isinstance(disabled, UnsetType) else flag_of("disabled", disabled),
        }
        new = {field: value for field, value in values.items() if value is not UNSET}
        done = operation("users.set", note=text_of("note", note))
        if not isinstance(password, UnsetType):
            new["password_hash"] = await hash_password(checked_password(password))

        async def change() -> bool:
            row, user, _ = await self._found(key)
            changed = msgspec.structs.replace(user, **new)
            return await self._records.write(
                AccessChange(key=user.key, revision=row.revision, record=changed), operation=done
            )

        await self._records.retry(change)
        return await self.aget(name)

    def remove(self, name: str, *, note: str = "") -> None:
        """Remove a user and end its sessions; `UserNotFound` if there is none of this name."""
        self._client.portal.run(self.aremove(name, note=note))

    async def aremove(self, name: str, *, note: str = "") -> None:
        """Remove a user and end its sessions; `UserNotFound` if there is none of this name."""
        scope_of_all(NOT_INSIDE)
        key, done = user_name(name), operation("users.remove", note=text_of("note", note))

        async def change() -> bool:
            return await self._records.write((await self._found(key)).removal, operation=done)

        await self._records.retry(change)

    async def _found(self, name: str) -> FoundRecord[UserRecord]:
        found = await self._records.find(UserRecord, AccessKey("user", name))
        if found is None:
            raise UserNotFound(name)
        return found
