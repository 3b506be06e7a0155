"""What users of other libraries write by habit raises an error that says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import ConfigError, Fairlane, PayloadTooLarge, Task
from fairlane.app.enqueue.suggestions import FOREIGN_NAMES
from tests.app.world import World


def note(text: str) -> None:
    """Stand for a handler."""


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """Its task."""
    return app.task(name="note")(note)


def test_a_task_that_is_called_says_what_to_write(world: World, task: Any) -> None:
    """And does nothing."""
    with pytest.raises(
        TypeError, match=r"task note is not called: write \.enqueue\(\.\.\.\).*\.func\(\.\.\.\)"
    ):
        task("a")
    with pytest.raises(TypeError, match="not called"):
        task.using(tenant="acme")(text="a")
    assert world.asked == []


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("delay", r"\.enqueue\("),
        ("send", r"\.enqueue\("),
        ("apply_async", r"\.using\(.*\)\.enqueue\("),
        ("s", r"\.bind\("),
        ("apply", r"\.func\("),
    ],
)
def test_the_words_of_other_libraries_lead_to_ours(task: Any, name: str, instead: str) -> None:
    """Celery, Dramatiq, Procrastinate, Taskiq, Huey."""
    with pytest.raises(AttributeError, match=f"no {name}; write {instead}"):
        getattr(task, name)
    assert not hasattr(task, name)
    assert name not in dir(task)


def test_no_word_of_ours_is_taken_for_one_of_theirs(task: Any) -> None:
    """What is advised is there."""
    own = {"aenqueue", "bind", "declared", "enqueue", "func", "name", "queue", "upcast", "using"}
    assert all(hasattr(task, name) for name in own)
    assert not own & FOREIGN_NAMES.keys()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("tennant", "there is no option tennant; did you mean 'tenant'?"),
        ("idempotency", "there is no option idempotency; did you mean 'idempotency_key'?"),
        ("countdown", "there is no option countdown; write delay"),
        ("eta", "there is no option eta; write run_at"),
        ("batch_key", "there is no option batch_key"),
        ("colour", "there is no option colour"),
    ],
)
def test_an_unknown_option_names_the_one_that_is_meant(
    world: World, app: Fairlane, task: Any, option: str, says: str
) -> None:
    """Of `using()`, and of a call by name."""
    for give in (
        lambda: task.using(**{option: "acme"}),
        lambda: app.enqueue_by_name("note", {"text": "a"}, tenant="acme", **{option: "b"}),
    ):
        with pytest.raises(TypeError) as caught:
            give()
        assert str(caught.value) == says
    assert world.asked == []


def test_a_task_cannot_be_made_of_a_task(app: Fairlane, task: Any) -> None:
    """A decorator too many."""
    for twice in (app.task, app.task(name="again")):
        with pytest.raises(ConfigError, match="is a task already"):
            twice(task)


def test_a_batch_that_is_too_long_names_what_cuts_it(app: Fairlane, task: Any) -> None:
    """S12: larger iterables are the caller's loop."""
    with pytest.raises(PayloadTooLarge, match=r"more than 1,000 jobs; .*fairlane\.chunks\(calls\)"):
        app.enqueue_many(task.bind("a") for _ in range(2_000))


def test_a_batch_that_is_too_heavy_names_what_cuts_it(app: Fairlane, task: Any) -> None:
    """S12: by a size of the caller's."""
    with pytest.raises(PayloadTooLarge, match=r"bytes from this job on; .*fairlane\.chunks\(calls, size\)"):
        app.enqueue_many(task.bind("a" * 1_000_000) for _ in range(20))
