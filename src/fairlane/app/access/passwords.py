"""Hash passwords with argon2id, in threads, and check them. Knows no user."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from fairlane.model.errors import ConfigError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

LEAST_CHARS: Final = 12
MOST_CHARS: Final = 1_000

_MEMORY: Final = 19 * 1024
"""KiB."""

_PASSES: Final = 3

_AT_ONCE: Final = 2
"""How many are checked at the same time: strangers may ask for it, and each takes `_MEMORY`."""


def checked_password(password: object) -> str:
    """Return a password that may be set; ValueError without the password if it may not.

    >>> checked_password("hunter2")
    Traceback (most recent call last):
        ...
    ValueError: password: has 7 characters; use 12 to 1,000
    """
    if not isinstance(password, str):
        message = f"password: is of type {type(password).__name__}; give a text"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    if not LEAST_CHARS <= len(password) <= MOST_CHARS:
        message = f"password: has {len(password):,} characters; use {LEAST_CHARS} to {MOST_CHARS:,}"
        raise ValueError(message)
    return password


async def hash_password(password: str) -> str:
    """Return the hash of a password, with its salt and its cost."""
    hasher = _hasher()
    return await asyncio.get_running_loop().run_in_executor(_threads(), hasher.hash, _bytes(password))


async def is_password(password: str, password_hash: str | None) -> bool:
    """Whether this is the password of a hash. Without one it is not, after the same work."""
    is_right = await asyncio.get_running_loop().run_in_executor(
        _threads(), _verify, password_hash, _bytes(password)
    )
    return is_right and password_hash is not None


def _verify(password_hash: str | None, password: bytes) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415 (an optional library)

    nobodys = _nobodys_hash()  # made once, whoever asks first
    try:
        return _hasher().verify(password_hash or nobodys, password)
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password[: MOST_CHARS + 1].encode("utf-8", "surrogatepass")


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher  # noqa: PLC0415 (an optional library)
    except ImportError:
        message = "passwords need argon2-cffi: install fairlane[web]"
        raise ConfigError(message) from None
    return PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY, parallelism=1)


@cache
def _nobodys_hash() -> str:
    """Return the hash of a password that nobody has: too long to be set."""
    return _hasher().hash(b"-" * (MOST_CHARS + 1) + b"-")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fairlane-password")
