"""Tell PostgreSQL for which tenant a transaction is, so that row-level security of your tables can ask.

The setting `fairlane.tenant` holds the tenant of the running handler, or of `with app.tenant(...)`, until the
end of a transaction: a connection that goes back to its pool carries nothing along. Where there is no tenant
nothing is set, and a policy that compares with the setting lets nothing through.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from fairlane.app.ambient import current_tenant
from fairlane.app.sync import run_here
from fairlane.store.postgres.guests import guest

SETTING: Final = "fairlane.tenant"

_SET: Final = "SELECT set_config($1::text, $2::text, true)"
_SET_BY_DRIVER: Final = "SELECT set_config('fairlane.tenant', %s, true)"


def set_tenant(connection: Any) -> None:
    """Set the tenant for the transaction that is open on a connection; LookupError where there is none.

    Takes the connections that `using(connection=)` takes; for an asynchronous one await `aset_tenant`.
    """
    run_here(aset_tenant(connection))


async def aset_tenant(connection: Any) -> None:
    """Set the tenant for the transaction that is open on a connection; see `set_tenant`."""
    await guest(connection).fetch(_SET, SETTING, current_tenant())


def register_engine(engine: Any) -> None:
    """Let every transaction of a SQLAlchemy engine, plain or async, begin with the tenant that it is for."""
    event: Any = import_module("sqlalchemy.event")
    event.listen(getattr(engine, "sync_engine", engine), "begin", _begun)


def _begun(connection: Any) -> None:
    if _tenant() is not None:
        set_tenant(connection)


def register_django() -> None:
    """Let every `atomic` of Django's PostgreSQL connections begin with the tenant that it is for.

    Call it once, where the application is set up. A statement outside of `atomic` is a transaction of its
    own, for nobody.
    """
    signals: Any = import_module("django.db.backends.signals")
    signals.connection_created.connect(_connected, dispatch_uid="fairlane.row_security")


def _connected(*, connection: Any, **_: Any) -> None:
    is_new = not any(isinstance(wrapper, _DjangoWrapper) for wrapper in connection.execute_wrappers)
    if connection.vendor == "postgresql" and is_new:
        connection.execute_wrappers.append(_DjangoWrapper())


class _DjangoWrapper:
    """Runs beside every statement of a connection, and sets the tenant before the first of a transaction."""

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        *_, context = statement
        beneath = context["connection"].connection
        tenant = _tenant()
        is_first = not beneath.autocommit and beneath.info.transaction_status == _IDLE
        if is_first and tenant is not None:
            beneath.execute(_SET_BY_DRIVER, (tenant,))
        return execute(*statement)


_IDLE: Final = 0
"""The status of a psycopg connection whose next statement begins a transaction."""


def _tenant() -> str | None:
    try:
        return current_tenant()
    except LookupError:
        return None
