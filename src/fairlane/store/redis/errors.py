"""Translate the errors of a server into ours. Knows no connection and no script.

The caller decides whether an error leaves the outcome of an enqueue unknown: only it knows what was sent.
"""

from __future__ import annotations

from typing import Any, Final

from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError, StoreUnavailable

BATCH_FIRST: Final = "BATCH"
"""How the error begins with which a script refuses because a large batch is coming in; nothing was done."""

_NOT_WRITING: Final = ("UNKILLABLE", "MISCONF", "NOREPLICAS")
"""How errors begin of a server that does not write now; nothing was done."""


def translate(error: Exception, place: str, *, is_unknown: bool = False) -> StoreError:
    """Return the error that callers get. `is_unknown`: an enqueue was sent, and no reply came."""
    from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

    text = str(error)
    if is_unknown:
        return EnqueueUnknown(
            f"{place}: the enqueue was sent and not confirmed ({text}); repeat it under the same ids"
        )
    if isinstance(error, (exceptions.TimeoutError, TimeoutError)):
        return StoreBusy(f"{place}: no answer in time ({text})")
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreUnavailable(f"{place}: the server is out of memory and took nothing ({text})")
    if isinstance(error, exceptions.AskError):
        # Half of the installation is here, half there: a client that followed would see only one half.
        return StoreUnavailable(f"{place}: its slot is being moved to another node ({text})")
    is_away = isinstance(
        error,
        (
            exceptions.ConnectionError,
            exceptions.ReadOnlyError,
            exceptions.ClusterError,
            exceptions.TryAgainError,
            OSError,
        ),
    )
    if is_away or text.startswith(_NOT_WRITING):
        return StoreUnavailable(f"{place}: {text}")
    if text.startswith("BUSY"):
        return StoreBusy(f"{place}: {text}")
    return StoreError(f"{place}: {text}")


def is_reply(error: Exception) -> bool:
    """Whether the server itself refused: then nothing was done, and the connection is still good."""
    from redis import exceptions  # noqa: PLC0415

    return isinstance(error, (exceptions.ResponseError, exceptions.BusyLoadingError))


def was_not_run(reply: Any) -> bool:
    """Whether a script was refused before it did anything: a batch goes first, or it is not loaded."""
    from redis import exceptions  # noqa: PLC0415

    is_refusal = isinstance(reply, exceptions.ResponseError) and str(reply).startswith(BATCH_FIRST)
    return is_refusal or isinstance(reply, exceptions.NoScriptError)
