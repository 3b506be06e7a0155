"""Set the tenant of a PostgreSQL transaction, for the row-level security policies of your own tables.

The setting `fairlane.tenant` holds the tenant of the running handler, or of `with app.tenant(...)`, until the
transaction ends: a connection that returns to its pool carries no tenant. Without a tenant nothing is set,
and a policy that compares with the setting lets no row through.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from fairlane.app.ambient import current_tenant
from fairlane.app.portal import run_here
from fairlane.store.postgres.app_connections import app_connection

SETTING: Final = "fairlane.tenant"

_SET: Final = "SELECT set_config($1::text, $2::text, true)"
_SET_BY_DRIVER: Final = "SELECT set_config('fairlane.tenant', %s, true)"


def set_tenant(connection: Any) -> None:
    """Set the tenant of the transaction open on a connection; LookupError if no tenant is ambient.

    Takes the connections of `using(connection=)`; for an async one await `aset_tenant`.
    """
    run_here(aset_tenant(connection))


async def aset_tenant(connection: Any) -> None:
    """Set the tenant of the transaction open on a connection; see `set_tenant`."""
    await app_connection(connection).fetch(_SET, SETTING, current_tenant())


def register_engine(engine: Any) -> None:
    """Set the tenant at the start of every transaction of a SQLAlchemy engine, plain or async."""
    event: Any = import_module("sqlalchemy.event")
    event.listen(getattr(engine, "sync_engine", engine), "begin", _begun)


def _begun(connection: Any) -> None:
    if _tenant() is not None:
        set_tenant(connection)


def register_django() -> None:
    """Set the tenant at the start of every `atomic` block on Django's PostgreSQL connections.

    Call it once, where the application is set up. Danger: a statement outside `atomic` is a transaction of
    its own, and has no tenant.
    """
    signals: Any = import_module("django.db.backends.signals")
    signals.connection_created.connect(_connected, dispatch_uid="fairlane.row_security")


def _connected(*, connection: Any, **_: Any) -> None:
    is_new = not any(isinstance(wrapper, _DjangoWrapper) for wrapper in connection.execute_wrappers)
    if connection.vendor == "postgresql" and is_new:
        connection.execute_wrappers.append(_DjangoWrapper())


class _DjangoWrapper:
    """Wraps every statement of a connection, and sets the tenant before the first of a transaction."""

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        *_, context = statement
        driver_connection = context["connection"].connection
        tenant = _tenant()
        is_first = not driver_connection.autocommit and driver_connection.info.transaction_status == _IDLE
        if is_first and tenant is not None:
            driver_connection.execute(_SET_BY_DRIVER, (tenant,))
        return execute(*statement)


_IDLE: Final = 0
"""The status of a psycopg connection whose next statement begins a transaction."""


def _tenant() -> str | None:
    try:
        return current_tenant()
    except LookupError:
        return None
