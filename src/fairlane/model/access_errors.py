"""What goes wrong with users, tokens, sessions, and signing in."""

from __future__ import annotations

from fairlane.model.errors import FairlaneError, Refused


class UserNotFound(FairlaneError, LookupError):
    """No user has that name."""

    def __init__(self, name: str) -> None:
        """Name the user."""
        super().__init__(f"no user {name!r}; `fairlane users` lists them")
        self.name = name


class UserExists(Refused):
    """A user of that name is there already. Nothing was changed."""

    def __init__(self, name: str) -> None:
        """Name the user, and what changes one."""
        super().__init__(f"there is a user {name!r} already; `fairlane users set` changes it")
        self.name = name


class TokenNotFound(FairlaneError, LookupError):
    """No token has that id: it was never made, it has expired, or it is revoked."""

    def __init__(self, id: str) -> None:
        """Name the id."""
        super().__init__(f"no token {id!r}; `fairlane tokens` lists them")
        self.id = id


class SessionNotFound(FairlaneError, LookupError):
    """No session has that id, or it has ended."""

    def __init__(self, id: str) -> None:
        """Name the id."""
        super().__init__(f"no session {id!r}: it has ended, or it never was")
        self.id = id


class TooManyAttempts(FairlaneError):
    """Too many attempts to sign in have failed; the password was not looked at."""

    def __init__(self, retry_after: int) -> None:
        """Say in how many seconds the next attempt may be made."""
        super().__init__(f"too many attempts to sign in have failed; try again in {retry_after} s")
        self.retry_after = retry_after
