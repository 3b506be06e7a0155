"""Translate errors of PostgreSQL and of the network into ours, and say whether a repeat is safe."""

from __future__ import annotations

from typing import Final, NamedTuple

import asyncpg

from fairlane.model.errors import SchemaTooOld, StoreBusy, StoreError, StoreUnavailable

LOCK_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 10
"""Shorter than a lease: a worker whose statement hangs must learn it while it can still renew."""

DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # and with it TimeoutError
)
"""All that the driver raises when the server or the network is to blame."""


class CommitUnknown(StoreUnavailable):
    """The connection was lost after something was sent that may have been committed."""


class _Translation(NamedTuple):
    """Our error for some errors of the driver; `{place}`, `{text}` and `{code}` are filled in."""

    errors: tuple[type[Exception], ...]
    kind: type[StoreError]
    text: str
    retry_safe: bool | None = None


_AWAY: Final = "{place} does not answer: {text}"
_TABLE: Final = (
    _Translation((asyncpg.ClientConfigurationError,), StoreError, "{place}: its URL is wrong: {text}"),
    _Translation((asyncpg.InterfaceError, asyncpg.InternalClientError, OSError), StoreUnavailable, _AWAY),
    _Translation(
        (
            asyncpg.PostgresConnectionError,
            asyncpg.CannotConnectNowError,
            asyncpg.AdminShutdownError,
            asyncpg.CrashShutdownError,
            asyncpg.IdleSessionTimeoutError,
            asyncpg.IdleInTransactionSessionTimeoutError,
        ),
        StoreUnavailable,
        _AWAY,
    ),
    _Translation(
        (asyncpg.ReadOnlySQLTransactionError,),
        StoreUnavailable,
        "{place} takes no writes: it is a replica, or was just made one",
    ),
    _Translation(
        (asyncpg.InsufficientResourcesError,),  # connections, disk, memory
        StoreUnavailable,
        "{place} has run out of something: {text}",
    ),
    _Translation(
        (asyncpg.LockNotAvailableError,),
        StoreBusy,
        f"{{place}}: somebody else held a lock for {LOCK_SECONDS} s",
    ),
    # No table has a check of its own: a row for `history_rest` has waited while its day was created.
    _Translation((asyncpg.CheckViolationError,), StoreBusy, "{place}: {text}"),
    _Translation(
        (asyncpg.QueryCanceledError, asyncpg.TransactionRollbackError), StoreBusy, "{place}: {text}"
    ),
    _Translation(
        (
            asyncpg.UndefinedTableError,
            asyncpg.UndefinedColumnError,
            asyncpg.UndefinedFunctionError,
            asyncpg.InvalidSchemaNameError,
        ),
        SchemaTooOld,
        "{place}: {text}; run `fairlane migrate`",
    ),
    _Translation(
        (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError),
        StoreUnavailable,
        "{place} refuses the connection: {text}",
        retry_safe=False,
    ),
    _Translation(
        (asyncpg.InsufficientPrivilegeError,),
        StoreError,
        "{place}: {text}; the documentation names the rights that a role needs",
    ),
    _Translation((Exception,), StoreError, "{place}: {text} ({code})"),
)
"""The first entry that knows an error translates it."""


def is_mistake(error: Exception) -> bool:
    """Whether the driver complains about how we use it, which is a bug of ours.

    It uses the same class to say that a connection or the pool was closed under us.
    """
    return type(error) in {asyncpg.InterfaceError, asyncpg.DataError} and "clos" not in str(error)


def translated(error: Exception, place: str, *, was_sent: bool = False) -> StoreError:
    """Return our error for the driver's. `was_sent`: something that commits was under way."""
    entry = next(entry for entry in _TABLE if isinstance(error, entry.errors))
    code = getattr(error, "sqlstate", None) or type(error).__name__
    text = entry.text.format(place=place, text=_text_of(error), code=code)
    kind = CommitUnknown if was_sent and entry.text is _AWAY else entry.kind
    return kind(text, retry_safe=entry.retry_safe)


def _text_of(error: Exception) -> str:
    """Return the part of an error that is for people."""
    match error:
        case TimeoutError():
            return "it took too long"
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case asyncpg.InternalClientError():
            return "the connection was lost"  # the driver's message is about its own state
        case _:
            # Only the first line: what follows may show a row, which is a tenant's data.
            return str(error.args[0]).partition("\n")[0] if error.args else type(error).__name__
