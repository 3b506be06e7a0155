"""Suggest the known word that a misspelt one was meant to be."""

from __future__ import annotations

from difflib import get_close_matches


def did_you_mean(word: str, known: list[str]) -> str:
    """Return a suggestion for a misspelt word, or "" if no known word is close.

    >>> did_you_mean("leese", ["lease", "processes"]), did_you_mean("x", ["lease"])
    ("; did you mean 'lease'?", '')
    """
    close = get_close_matches(word, known, 1) or [one for one in known if word and one.startswith(word)]
    return f"; did you mean {close[0]!r}?" if close else ""
