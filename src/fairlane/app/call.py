"""A task with options and arguments, not yet enqueued. Holds them; judges nothing."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fairlane.app.declaration import Declaration
from fairlane.app.options import Options

R_co = TypeVar("R_co", covariant=True)


class Call(Generic[R_co]):
    """What `bind()` gives: ready to be enqueued, alone or with others by `enqueue_many`."""

    __slots__ = ("arguments", "options", "task")

    def __init__(self, task: Declaration, options: Options, arguments: dict[str, Any]) -> None:
        self.task = task
        self.options = options
        self.arguments = arguments

    def __repr__(self) -> str:
        """Name the task and its parameters; values may be secret (S6)."""
        return f"<Call of {self.task.name}({', '.join(self.arguments)})>"
