"""Background jobs for multi-tenant Python applications: fair between tenants, durable, observable.

Importing this package starts nothing and opens nothing. The public names live in `fairlane._public`, which is
loaded when the first of them is used, so that commands which need none of them start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane._public import *  # noqa: F403 (each of its names is one of ours)
else:  # with __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Load all public names, and return the requested one."""
        _public = import_module("fairlane._public")
        if name != "__all__" and name not in _public.__all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals().update({one: getattr(_public, one) for one in ("__all__", *_public.__all__)})
        return globals()[name]

    def __dir__() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*globals(), *import_module("fairlane._public").__all__})
