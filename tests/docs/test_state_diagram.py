"""The committed state diagram is the one that the table of transitions gives."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairlane.model.lifecycle.states import TRANSITIONS, State
from tools import state_diagram

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "state-diagram.md"


def test_the_committed_diagram_is_the_generated_one() -> None:
    """`make diagram` was run after the last change of the table."""
    assert PAGE.read_text(encoding="utf-8") == state_diagram.page()


def test_the_diagram_shows_every_transition() -> None:
    """No pair and no target of the table is lost on the way to the drawing."""
    drawn = {
        (start, event, end) for (start, end), events in state_diagram.edges().items() for event in events
    }
    listed = {(start, event.value, end) for (start, event), ends in TRANSITIONS.items() for end in ends}
    assert drawn == listed


def test_the_diagram_ends_every_finished_state_and_no_other() -> None:
    """An arrow to the end mark stands at succeeded, dead and cancelled."""
    ended = {line.split()[0] for line in state_diagram.diagram() if line.endswith("--> [*]")}
    assert ended == {State.SUCCEEDED.value, State.DEAD.value, State.CANCELLED.value}


def test_the_table_has_one_row_for_each_pair() -> None:
    """Two lines of head, then the pairs."""
    assert len(list(state_diagram.table())) == len(TRANSITIONS) + 2
