"""Rates are read from text, and written so that they are read again."""

from __future__ import annotations

import pytest

from fairlane.model.policy.rate_text import read_rate, write_rate


@pytest.mark.parametrize("text", ["1/second", "50/minute", "10/hour+20", "3/day", "none"])
def test_what_is_written_is_read_again(text: str) -> None:
    """Nothing of a rate is lost."""
    assert write_rate(read_rate(text)) == text


@pytest.mark.parametrize("text", ["", "fast", "/minute", "-1/minute", "1" * 10 + "/day", "5/minute+x"])
def test_what_is_no_rate_is_refused_with_how_to_write_one(text: str) -> None:
    """Whoever typed it sees what is expected."""
    with pytest.raises(ValueError, match="is not a rate; write it as 50/minute"):
        read_rate(text)


def test_an_unknown_unit_is_refused() -> None:
    """By the rate itself."""
    with pytest.raises(ValueError, match="per"):
        read_rate("5/fortnight")
