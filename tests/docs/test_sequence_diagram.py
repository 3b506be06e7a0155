"""The committed sequence diagram is the one that a real job gives, and another order or verb is found."""

from __future__ import annotations

import asyncio
import re
from typing import Final, get_type_hints

import pytest

from fairlane.store.contract import Store
from tools import sequence_diagram
from tools.pages import ROOT
from tools.sequence_diagram import PAGE, SHOWN, Step, diagram, with_diagram

TEXT: Final = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """What happened to one job on a real SQLite file."""
    return asyncio.run(sequence_diagram.record())


def test_the_committed_diagram_is_what_happens(steps: list[Step]) -> None:
    """`make diagram` was run after the last change of the order, of a verb or of a file that calls one."""
    assert with_diagram(TEXT, steps) == TEXT


def test_a_job_is_enqueued_claimed_renewed_and_settled_in_this_order(steps: list[Step]) -> None:
    """The handler starts after the claim and returns before the settlement."""
    enqueue, claim, renew, settle = SHOWN
    assert [step.what for step in steps] == [enqueue, claim, "starts", renew, "returns", settle]


def test_every_verb_and_every_file_of_the_diagram_exists() -> None:
    """The verbs are the contract's, the files are the package's."""
    drawn = re.findall(r"->>S: (\w+)\.(\w+)\((\w+)\) in (\S+)", TEXT)
    assert [f"{facet}.{verb}" for facet, verb, _, _ in drawn] == list(SHOWN)
    for facet, verb, request, file in drawn:
        protocol = get_type_hints(getattr(Store, facet).fget)["return"]
        assert get_type_hints(getattr(protocol, verb))["request"].__name__ == request
        assert (ROOT / "src" / "fairlane" / file).is_file()


def test_another_order_is_another_diagram(steps: list[Step]) -> None:
    """The check can fail."""
    assert list(diagram(steps[::-1])) != list(diagram(steps))
    assert with_diagram(TEXT, steps[::-1]) != TEXT
    with pytest.raises(ValueError, match="no place"):
        with_diagram("no marks", steps)
