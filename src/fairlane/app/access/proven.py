"""Remember for some minutes which passwords were right: requests with basic auth bring one each time.

A password is remembered as a keyed hash, under a key that this process draws and shows nobody.
"""

from __future__ import annotations

from hmac import digest
from secrets import token_bytes
from typing import Final

from fairlane.app.client import Client
from fairlane.model.access_records import UserRecord
from fairlane.model.instants import MINUTE, Micros

_REMEMBERED_FOR: Final[Micros] = 5 * MINUTE
_MOST: Final = 1_000


class ProvenPasswords:
    """Passwords that were right, each with its user and the mark of the password that the user had."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._key = token_bytes()
        self._until: dict[bytes, Micros] = {}

    def has(self, user: UserRecord, password: str) -> bool:
        """Whether this was the password of a user, and still is."""
        return self._until.get(self._entry(user, password), 0) > self._client.clock.elapsed()

    def add(self, user: UserRecord, password: str) -> None:
        """Remember a password that was right. A full memory is emptied: it only saves work."""
        if len(self._until) >= _MOST:
            self._until.clear()
        self._until[self._entry(user, password)] = self._client.clock.elapsed() + _REMEMBERED_FOR

    def _entry(self, user: UserRecord, password: str) -> bytes:
        text = f"{user.name}\0{user.password_mark}\0{password}"
        return digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
