"""Arguments stored by older code are brought up step by step, or refused by the name of the step."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.payload.encoding import Undecodable
from fairlane.model.payload.upcast import Upcasters


def three_versions() -> Upcasters:
    """Make a task whose arguments changed twice."""
    steps = Upcasters("mail.send")
    steps.add(2, lambda old: {"to": old["to"], "subject": old.get("title", "")})
    steps.add(1, lambda old: {"to": [old["recipient"]]})
    return steps


@pytest.mark.parametrize(
    ("stored", "arguments"),
    [
        (1, {"recipient": "ada"}),
        (2, {"to": ["ada"]}),
        (3, {"to": ["ada"], "subject": ""}),
    ],
)
def test_every_older_version_is_brought_up_to_the_current_one(stored: Any, arguments: Any) -> None:
    """One step after another, whatever their order of declaration."""
    assert three_versions().upcast(arguments, stored, 3) == {"to": ["ada"], "subject": ""}


def test_the_given_arguments_stay_as_they_are() -> None:
    """A step may change what it gets, also deep inside."""

    def spoil(old: dict[str, Any]) -> dict[str, Any]:
        old["rows"].append(2)
        old["new"] = True
        return old

    steps = Upcasters("t")
    steps.add(1, spoil)
    given = {"rows": [1]}
    assert steps.upcast(given, 1, 2) == {"rows": [1, 2], "new": True}
    assert given == {"rows": [1]}
    same = steps.upcast(given, 2, 2)
    assert same == given
    assert same is not given


def test_arguments_of_a_newer_version_are_refused() -> None:
    """An old worker must not guess during a deploy."""
    with pytest.raises(Undecodable, match=r"of version 4, this worker knows 3"):
        three_versions().upcast({}, 4, 3)


@pytest.mark.parametrize(("stored", "missing"), [(1, "1 -> 2"), (2, "2 -> 3"), (0, "0 -> 1")])
def test_a_missing_step_is_named(stored: Any, missing: Any) -> None:
    """Without any step, the first one that would be needed."""
    with pytest.raises(Undecodable, match=f"mail.send: upcast {missing} is missing"):
        Upcasters("mail.send").upcast({}, stored, 3)


def test_a_step_that_raises_is_named_without_its_message() -> None:
    """The message may quote an argument; it stays behind as the cause."""
    steps = Upcasters("mail.send")
    steps.add(1, lambda old: {"to": old["hunter2"]})
    with pytest.raises(Undecodable) as refusal:
        steps.upcast({}, 1, 2)
    assert str(refusal.value) == "task mail.send: upcast 1 -> 2 raised KeyError"
    assert isinstance(refusal.value.__cause__, KeyError)


@pytest.mark.parametrize("returned", [None, [], "x", {1: 2}, 0])
def test_a_step_that_returns_no_arguments_is_named(returned: Any) -> None:
    """Most often a step that forgot its `return`."""
    steps = Upcasters("mail.send")
    steps.add(1, lambda _old: returned)
    with pytest.raises(Undecodable, match="upcast 1 -> 2 returned no dict with text keys"):
        steps.upcast({}, 1, 2)


def test_the_same_step_twice_is_an_error() -> None:
    """One of them would be lost silently."""
    with pytest.raises(ValueError, match=r"mail\.send: upcast from version 1 is declared twice"):
        three_versions().add(1, dict)


@pytest.mark.parametrize("version", [0, -1])
def test_versions_start_at_one(version: Any) -> None:
    """There is nothing before."""
    with pytest.raises(ValueError, match="versions start at 1"):
        three_versions().add(version, dict)


def test_steps_that_reach_the_version_are_fine() -> None:
    """The oldest ones may be gone, and a task need have none."""
    three_versions().check(3)
    Upcasters("t").check(1)
    Upcasters("t").check(7)
    late = Upcasters("t")
    late.add(4, dict)
    late.check(5)


@pytest.mark.parametrize("current", [1, 2])
def test_a_step_from_the_tasks_own_version_is_an_error(current: Any) -> None:
    """Somebody wrote the step and forgot the version."""
    with pytest.raises(
        ValueError, match=f"version {current}, but has an upcast from version {current}; raise"
    ):
        three_versions().check(current)


def test_a_gap_between_the_steps_is_an_error() -> None:
    """At registration, not when an old job comes up."""
    steps = three_versions()
    steps.add(4, dict)
    with pytest.raises(ValueError, match="is version 5, but has no upcast from version 3"):
        steps.check(5)
    with pytest.raises(ValueError, match="is version 4, but has no upcast from version 3"):
        three_versions().check(4)
