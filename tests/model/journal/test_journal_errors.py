"""The errors of journals say what was asked for."""

from __future__ import annotations

from fairlane.model.journal.errors import EntryNotFound


def test_an_entry_that_is_not_there_is_named() -> None:
    """A look-up error with the number."""
    error = EntryNotFound(7)
    assert str(error) == "no entry 7"
    assert error.number == 7
    assert isinstance(error, LookupError)
