"""`isolation` and `max_memory` of a task: what is refused when it is declared, and by a worker's start."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.app.task.rules import declared_rules
from fairlane.model.errors import ConfigError


def _nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"isolation": "thread"}, "isolation is 'thread'; use auto or process"),
        ({"max_memory": "400MB"}, 'max_memory needs isolation="process"'),
        ({"max_memory": "much", "isolation": "process"}, "max_memory is 'much'; use bytes"),
        ({"max_memory": 0, "isolation": "process"}, "max_memory is 0; use bytes"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_declared(options: dict[str, Any], says: str) -> None:
    """One clear error, which names the task and the option."""
    with pytest.raises(ConfigError, match=says):
        Fairlane().task(name="send", **options)(_nothing)


def test_memory_is_a_size() -> None:
    """In bytes, or with a unit."""
    app = Fairlane()
    task = app.task(name="send", isolation="process", max_memory="400MB")(_nothing)
    assert task.declared.max_memory == 400 * 2**20


def test_the_file_cannot_bound_memory_that_is_shared() -> None:
    """The values of file and code are checked together, when a worker starts."""
    app = Fairlane(config={"tasks": {"send": {"max_memory": "400MB"}}})
    app.task(name="send")(_nothing)
    with pytest.raises(ConfigError, match='max_memory needs isolation="process"'):
        declared_rules(app)
