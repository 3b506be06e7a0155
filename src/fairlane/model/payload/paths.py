"""The path to a value in a payload. Knows nothing of the value, so a path cannot show it."""

from __future__ import annotations

from types import EllipsisType
from typing import TypeAlias

Step: TypeAlias = str | int | EllipsisType
"""One step down: a field, an index, or `...` for a member of a set."""

Trail: TypeAlias = tuple["Trail | None", Step]
"""The path to a value, last step first: a step down costs one small tuple and copies nothing."""

_WIDEST = 40
"""Characters of an unusual key that are shown."""

_LONGEST_FIELD = 64


def shown(text: str) -> str:
    r"""Quote text from a payload for a message: shortened, unprintable characters escaped.

    >>> print(shown("a b\n"), shown("x" * 50))
    'a b\n' 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'…
    """
    return repr(text) if len(text) <= _WIDEST else f"{text[:_WIDEST]!r}…"


def path_of(trail: Trail) -> str:
    """Return a path as text.

    >>> path_of(((((None, "arguments"), "rows"), 3), "when"))
    'arguments.rows[3].when'
    >>> path_of((((None, "arguments"), "due date"), ...))
    "arguments['due date'][*]"
    """
    steps: list[Step] = []
    rest: Trail | None = trail
    while rest is not None:
        rest, step = rest
        steps.append(step)
    root, *below = reversed(steps)
    return f"{root}{''.join(map(_written, below))}"


def _written(step: Step) -> str:
    if isinstance(step, str):
        plain = len(step) <= _LONGEST_FIELD and step.isidentifier()
        return f".{step}" if plain else f"[{shown(step)}]"
    return "[*]" if step is ... else f"[{step}]"
