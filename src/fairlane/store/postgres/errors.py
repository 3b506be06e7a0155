"""Say in our words what PostgreSQL or the way to it said, and whether a repeat is safe."""

from __future__ import annotations

from typing import Final, NamedTuple

import asyncpg

from fairlane.model.errors import SchemaTooOld, StoreBusy, StoreError, StoreUnavailable

LOCK_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 10
"""Shorter than a lease: a worker whose statements hang must hear of it while it can still renew elsewhere."""

DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # and with it TimeoutError
)
"""All that the driver raises when the server, or the way to it, is to blame."""


class CommitUnknown(StoreUnavailable):
    """The connection was lost after something was sent that may have been committed."""


class _Words(NamedTuple):
    """What some errors of the driver are to us; `{place}` and `{said}` are filled in."""

    errors: tuple[type[Exception], ...]
    kind: type[StoreError]
    text: str
    retry_safe: bool | None = None


_AWAY: Final = "{place} does not answer: {said}"
_TABLE: Final = (
    _Words((asyncpg.ClientConfigurationError,), StoreError, "{place}: its URL is wrong: {said}"),
    _Words((asyncpg.InterfaceError, asyncpg.InternalClientError, OSError), StoreUnavailable, _AWAY),
    _Words(
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
    _Words(
        (asyncpg.ReadOnlySQLTransactionError,),
        StoreUnavailable,
        "{place} takes no writes: it is a replica, or was just made one",
    ),
    _Words(
        (asyncpg.InsufficientResourcesError,),  # connections, disk, memory
        StoreUnavailable,
        "{place} has run out of something: {said}",
    ),
    _Words(
        (asyncpg.LockNotAvailableError,),
        StoreBusy,
        f"{{place}}: somebody else held a lock for {LOCK_SECONDS} s",
    ),
    # No table has a check of its own. A row for the rest of history has waited while its day was made.
    _Words((asyncpg.CheckViolationError,), StoreBusy, "{place}: {said}"),
    _Words((asyncpg.QueryCanceledError, asyncpg.TransactionRollbackError), StoreBusy, "{place}: {said}"),
    _Words(
        (
            asyncpg.UndefinedTableError,
            asyncpg.UndefinedColumnError,
            asyncpg.UndefinedFunctionError,
            asyncpg.InvalidSchemaNameError,
        ),
        SchemaTooOld,
        "{place}: {said}; run `fairlane migrate`",
    ),
    _Words(
        (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError),
        StoreUnavailable,
        "{place} refuses the connection: {said}",
        retry_safe=False,
    ),
    _Words(
        (asyncpg.InsufficientPrivilegeError,),
        StoreError,
        "{place}: {said}; the documentation names the rights that a role needs",
    ),
    _Words((Exception,), StoreError, "{place}: {said} ({code})"),
)
"""The first line that knows an error speaks of it."""


def is_mistake(error: Exception) -> bool:
    """Whether the driver complains of how it is used, which is nobody's fault but ours.

    It says with the same class that a connection or the pool was closed under us.
    """
    return type(error) in {asyncpg.InterfaceError, asyncpg.DataError} and "clos" not in str(error)


def translated(error: Exception, place: str, *, was_sent: bool = False) -> StoreError:
    """Give our error for the driver's. `was_sent`: something that commits was on its way when it happened."""
    words = next(words for words in _TABLE if isinstance(error, words.errors))
    code = getattr(error, "sqlstate", None) or type(error).__name__
    text = words.text.format(place=place, said=_said(error), code=code)
    kind = CommitUnknown if was_sent and words.text is _AWAY else words.kind
    return kind(text, retry_safe=words.retry_safe)


def _said(error: Exception) -> str:
    """Give the words of an error that are for people."""
    match error:
        case TimeoutError():
            return "it took too long"
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case asyncpg.InternalClientError():
            return "the connection was lost"  # what the driver says then is about its own insides
        case _:
            # The first line alone: what follows may show a row, which is a tenant's.
            return str(error.args[0]).partition("\n")[0] if error.args else type(error).__name__
