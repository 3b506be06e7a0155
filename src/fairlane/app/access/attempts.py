"""Limit attempts to sign in, over all processes: each is counted before the password is looked at (S81)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from fairlane.app.client import Client
from fairlane.model.access_errors import TooManyAttempts
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract.access import AttemptRequest, ForgiveRequest

WITHIN: Final[Micros] = 5 * MINUTE
FOR_NAME_AND_PEER: Final = 5
FOR_PEER: Final = 20
FOR_NAME: Final = 50


class AttemptLimits:
    """The counts of one store. An attempt that succeeds is given back."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def begin(self, name: str, peer: str) -> tuple[str, ...]:
        """Count an attempt and return its labels; `TooManyAttempts` if too many have failed.

        Labels are hashes: what somebody typed as a name may be a password.
        """
        most = {
            _label("both", name, peer): FOR_NAME_AND_PEER,
            _label("peer", peer): FOR_PEER,
            _label("name", name): FOR_NAME,
        }
        request = AttemptRequest(scope=Scope.all(), most=most, within=WITHIN)
        wait = await self._client.store.access.attempt(request)
        if wait:
            raise TooManyAttempts(-(-wait // SECOND))
        return tuple(most)

    async def forgive(self, labels: tuple[str, ...]) -> None:
        """Give an attempt back."""
        await self._client.store.access.forgive(ForgiveRequest(scope=Scope.all(), labels=labels))


def _label(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
