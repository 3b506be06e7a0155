"""Background jobs for multi-tenant Python applications: fair between tenants, durable, observable.

Importing this starts nothing and opens nothing. The public names are those of `fairlane.face`, which is
loaded when the first of them is used: a command that needs none of them answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.face import *  # noqa: F403 (each of its names is one of ours)
else:  # or type checkers would believe that any name is here

    def __getattr__(name: str) -> Any:
        """Load the public names, all at once, and give the one that was asked for."""
        face = import_module("fairlane.face")
        if name != "__all__" and name not in face.__all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals().update({one: getattr(face, one) for one in ("__all__", *face.__all__)})
        return globals()[name]

    def __dir__() -> list[str]:
        """Name what is there, loaded or not."""
        return sorted({*globals(), *import_module("fairlane.face").__all__})
