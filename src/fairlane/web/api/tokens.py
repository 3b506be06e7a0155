"""`/tokens`: bearer tokens of programs. A secret is in one answer, that of its creation (S80)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from fairlane.app.access.views import NewToken, Token
from fairlane.app.config.units import seconds_of
from fairlane.model.access import Role
from fairlane.model.access_errors import TokenNotFound
from fairlane.web.api.users import check_role
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup
from fairlane.web.reading import bad_field

TOKENS: Final = EndpointGroup("tokens", "Tokens: how programs say who they are, as a bearer token.")

Lifetime = Annotated[
    str | None, Meta(description="How long it is valid, as in 90d; else until it is revoked.")
]


class TokenList(msgspec.Struct, frozen=True):
    """The tokens that may be used, the oldest first."""

    items: Sequence[Token]


class TokenCreateBody(Change, frozen=True, kw_only=True):
    """A new token. `name` says what it is for. With a `tenant`, nothing of other tenants exists for it."""

    name: str
    role: Role
    tenant: str | None = None
    lasts: Lifetime = msgspec.field(default=None, name="for")


@TOKENS.get("/tokens", "tokens.find", least=Role.ADMIN, tenants="all")
async def find(call: WebCall) -> TokenList:
    """Return the tokens that may be used; no secret is shown again."""
    return TokenList(await call.app.tokens.alist())


@TOKENS.post("/tokens", "tokens.create", least=Role.ADMIN, tenants="all", status=201)
async def create(call: WebCall, body: TokenCreateBody) -> NewToken:
    """Make a token. Its `secret` is in this answer only: send it as `Authorization: Bearer …`."""
    check_role(call, body.role)
    return await call.app.tokens.acreate(
        body.name, role=body.role, tenant=body.tenant, valid_for=_lifetime(body.lasts), note=body.note
    )


@TOKENS.post(
    "/tokens/{token}/revoke",
    "tokens.revoke",
    least=Role.ADMIN,
    tenants="all",
    done="Token {token} is revoked.",
)
async def revoke(call: WebCall, token: str, body: Change) -> Token:
    """Revoke a token, at once and for good. Returns the token as it was."""
    found = next((one for one in await call.app.tokens.alist() if one.id == token), None)
    if found is None:
        raise TokenNotFound(token)
    check_role(call, found.role)
    await call.app.tokens.arevoke(token, note=body.note)
    return found


def _lifetime(text: str | None) -> float | None:
    try:
        return None if text is None else seconds_of(text)
    except ValueError:
        raise bad_field("for", f"is {str(text)[:40]!r}", "write it as in 12h or 90d") from None
