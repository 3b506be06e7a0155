"""Say in our words what PostgreSQL or the way to it said, and whether a repeat is safe."""

from __future__ import annotations

from typing import Final

import asyncpg

from fairlane.model.errors import SchemaTooOld, StoreBusy, StoreError, StoreUnavailable

LOCK_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 30

AWAY: Final = (
    OSError,  # and with it TimeoutError: the network, or a server that no longer answers
    asyncpg.InterfaceError,  # the connection was closed under us
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,  # the driver lost the thread of what the server says
)
"""The connection is gone. What was sent last may have happened."""

_BUSY: Final = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.TransactionRollbackError,  # deadlocks
)
_MISSING: Final = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,
)
_REFUSED: Final = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


class CommitUnknown(StoreUnavailable):
    """The connection was lost after something was sent that may have been committed."""


def translated(error: Exception, place: str, *, was_sent: bool = False) -> StoreError:
    """Give our error for the driver's. `was_sent`: a commit may have been on its way when it happened."""
    # The first line alone: the details may show a row, which is a tenant's.
    said = str(error.args[0]).partition("\n")[0] if error.args else type(error).__name__
    match error:
        case asyncpg.DataError():
            return StoreError(f"{place}: {said}")
        case asyncpg.ClientConfigurationError():
            return StoreError(f"{place}: its URL or settings are wrong: {said}")
        case _ if isinstance(error, AWAY):
            kind = CommitUnknown if was_sent else StoreUnavailable
            return kind(f"{place} does not answer: {said or type(error).__name__}")
        case asyncpg.ReadOnlySQLTransactionError():
            return StoreUnavailable(f"{place} takes no writes: it is a replica, or was just made one")
        case asyncpg.TooManyConnectionsError():
            return StoreUnavailable(f"{place} takes no more connections: {said}")
        case asyncpg.InsufficientResourcesError():
            return StoreUnavailable(f"{place} has run out of something: {said}")
        case asyncpg.LockNotAvailableError():
            return StoreBusy(f"{place}: somebody held a lock for {LOCK_SECONDS} s")
        case _ if isinstance(error, _BUSY):
            return StoreBusy(f"{place}: {said}")
        case _ if isinstance(error, _MISSING):
            return SchemaTooOld(f"{place}: {said}; run `fairlane migrate`")
        case _ if isinstance(error, _REFUSED):
            return StoreUnavailable(f"{place} refuses the connection: {said}", retry_safe=False)
        case asyncpg.InsufficientPrivilegeError():
            return StoreError(f"{place}: {said}; see `Roles and grants` in the documentation")
        case _:
            state = getattr(error, "sqlstate", None) or type(error).__name__
            return StoreError(f"{place}: {said} ({state})")
