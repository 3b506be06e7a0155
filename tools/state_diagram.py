"""Draw the life of a job from the table of transitions. Knows the table, not the rules that choose a target.

`make diagram` writes docs/reference/state-diagram.md with it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fairlane.model.lifecycle import TRANSITIONS, State, is_finished

HEAD = """\
# State diagram

Generated from `TRANSITIONS` in `src/fairlane/model/lifecycle.py` by `make diagram`; do not edit by hand.
The rules behind it are S23 to S34 of the [semantics](semantics.md).
A pair of state and event that is not listed is refused and changes nothing.
"""


def in_order(states: Collection[State]) -> list[State]:
    """Put states into the order of `State`, whatever collection they come in."""
    return [state for state in State if state in states]


def edges() -> dict[tuple[State | None, State], list[str]]:
    """Gather the events that lead from one state to another, in the table's order."""
    found: dict[tuple[State | None, State], list[str]] = {}
    for (start, event), targets in TRANSITIONS.items():
        for end in in_order(targets):
            found.setdefault((start, end), []).append(event.value)
    return found


def diagram() -> Iterator[str]:
    """Give the lines of a Mermaid diagram; `[*]` stands before the enqueue and after the end."""
    yield "stateDiagram-v2"
    for (start, end), events in edges().items():
        yield f"    {start.value if start else '[*]'} --> {end.value}: {', '.join(events)}"
    for state in State:
        if is_finished(state):
            yield f"    {state.value} --> [*]"


def table() -> Iterator[str]:
    """Give the lines of a table, one for each legal pair of state and event."""
    yield "| from | event | to |"
    yield "|---|---|---|"
    for (start, event), targets in TRANSITIONS.items():
        ends = " or ".join(end.value for end in in_order(targets))
        yield f"| {start.value if start else '–'} | `{event.value}` | {ends} |"


def page() -> str:
    """Put the page together."""
    return "\n".join([HEAD, "```mermaid", *diagram(), "```", "", *table(), ""])


if __name__ == "__main__":
    print(page(), end="")
