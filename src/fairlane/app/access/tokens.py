"""`app.tokens`: bearer tokens with which programs use the REST API (S79, S80)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.app.access.checks import lifetime_of, role_of, tenant_of, token_name
from fairlane.app.access.records import AccessRecords, FoundRecord
from fairlane.app.access.secret_text import new_secret
from fairlane.app.access.users import NOT_INSIDE
from fairlane.app.access.views import NewToken, Token, token_view
from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, text_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.access import Role
from fairlane.model.access_errors import TokenNotFound
from fairlane.model.access_records import AccessKey, TokenRecord
from fairlane.model.checking import instance
from fairlane.model.instants import SECOND, Duration


class Tokens:
    """The tokens of a store. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._records = AccessRecords(client)

    def list(self) -> Sequence[Token]:
        """Return the tokens that may be used, the oldest first. No secret can be shown again."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[Token]:
        """Return the tokens that may be used, the oldest first."""
        scope_of_all(NOT_INSIDE)
        rows = await self._records.all("token")
        found = [token_view(row, row.record) for row in rows if isinstance(row.record, TokenRecord)]
        return tuple(sorted(found, key=lambda token: (token.created_at, token.id)))

    def create(
        self,
        name: str,
        *,
        role: Role | str,
        tenant: str | None = None,
        valid_for: Duration | None = None,
        note: str = "",
    ) -> NewToken:
        """Make a token and return it with its secret, which is shown this once.

        `name` says what it is for. With a `tenant`, nothing of other tenants exists for it. It is valid for
        `valid_for` (seconds or a timedelta), or until it is revoked.
        """
        return self._client.portal.run(
            self.acreate(name, role=role, tenant=tenant, valid_for=valid_for, note=note)
        )

    async def acreate(
        self,
        name: str,
        *,
        role: Role | str,
        tenant: str | None = None,
        valid_for: Duration | None = None,
        note: str = "",
    ) -> NewToken:
        """Make a token and return it with its secret; see `create`."""
        scope_of_all(NOT_INSIDE)
        lifetime = None if valid_for is None else lifetime_of("valid_for", valid_for)
        text, secret = new_secret()
        token = TokenRecord(
            id=secret.id,
            secret_hash=secret.hash,
            name=token_name(name),
            role=role_of(role),
            tenant=tenant_of(tenant),
            created_by=actor(None),
        )
        seconds = None if lifetime is None else lifetime // SECOND
        done = operation("tokens.create", note=text_of("note", note), valid_for=seconds)
        await self._records.add(token, done, lifetime)
        found = await self._found(token.id)
        return NewToken(token=token_view(found.row, found.record), secret=text)

    def revoke(self, id: str, *, note: str = "") -> None:
        """Revoke a token at once and for good; `TokenNotFound` if there is none with this id."""
        self._client.portal.run(self.arevoke(id, note=note))

    async def arevoke(self, id: str, *, note: str = "") -> None:
        """Revoke a token at once and for good; `TokenNotFound` if there is none with this id."""
        scope_of_all(NOT_INSIDE)
        instance("id", id, str, "the id of a token")
        done = operation("tokens.revoke", note=text_of("note", note))

        async def change() -> bool:
            return await self._records.write((await self._found(id)).removal, operation=done)

        await self._records.retry(change)

    async def _found(self, id: str) -> FoundRecord[TokenRecord]:
        found = await self._records.find(TokenRecord, AccessKey("token", id)) if id.isalnum() else None
        if found is None:
            raise TokenNotFound(id)
        return found
