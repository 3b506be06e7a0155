"""How much of an error is stored."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorBounds, ErrorClass, Failure


@pytest.mark.parametrize(
    ("bounds", "message", "trace"),
    [
        (ErrorBounds(), "too long", "first\nlast"),
        (ErrorBounds(message=3), "too", "first\nlast"),
        (ErrorBounds(traceback=4), "too long", "last"),
        (ErrorBounds(traceback=0), "too long", None),
    ],
)
def test_an_error_is_stored_within_its_bounds(bounds: ErrorBounds, message: str, trace: str | None) -> None:
    """The beginning of the message and the end of the traceback."""
    whole = Failure(ErrorClass.TIMEOUT, "E", "too long", "first\nlast")
    assert bounds.cut(whole) == Failure(ErrorClass.TIMEOUT, "E", message, trace)
    without = Failure(ErrorClass.TIMEOUT, "E", "too long")
    assert bounds.cut(without) == Failure(ErrorClass.TIMEOUT, "E", message)
