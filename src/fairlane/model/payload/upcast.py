"""Convert arguments that an older version of a task has stored to the current version (PRODUCT 2.4).

The steps are the application's functions, one per version that stored arguments may still have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias, TypeGuard, cast

from fairlane.model.payload.reading import Undecodable

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the arguments of version n and returns those of version n + 1."""


class Upcasters:
    """The upcast steps of one task, each from one version to the next.

    >>> steps = Upcasters("mail.send")
    >>> steps.add(1, lambda old: {"to": [old["recipient"]]})
    >>> steps.upcast({"recipient": "ada"}, stored_version=1, current_version=2)
    {'to': ['ada']}
    """

    __slots__ = ("_steps", "_task")

    def __init__(self, task: str) -> None:
        self._task = task
        self._steps: dict[int, Step] = {}

    def add(self, from_version: int, fn: Step) -> None:
        """Declare the step from a version to the next, once each."""
        if from_version < 1:
            raise ValueError(f"task {self._task}: upcast from version {from_version}; versions start at 1")
        if from_version in self._steps:
            raise ValueError(f"task {self._task}: upcast from version {from_version} is declared twice")
        self._steps[from_version] = fn

    def check(self, current_version: int) -> None:
        """Refuse steps that cannot lead to the task's version; called when it is registered.

        The oldest steps may be missing, once nothing so old is queued; the others must be without a gap.

        >>> steps = Upcasters("mail.send")
        >>> steps.add(1, dict)
        >>> steps.check(3)
        Traceback (most recent call last):
        ValueError: task mail.send is version 3, but has no upcast from version 2
        """
        prefix = f"task {self._task} is version {current_version}, but has"
        beyond = [version for version in sorted(self._steps) if version >= current_version]
        if beyond:
            raise ValueError(f"{prefix} an upcast from version {beyond[0]}; raise the task's version")
        for version in range(min(self._steps, default=current_version), current_version):
            if version not in self._steps:
                raise ValueError(f"{prefix} no upcast from version {version}")

    def oldest(self, current_version: int) -> int:
        """Return the oldest version that can be read.

        >>> Upcasters("mail.send").oldest(3)
        3
        """
        return min(self._steps, default=current_version)

    def upcast(
        self, arguments: Mapping[str, Any], stored_version: int, current_version: int
    ) -> dict[str, Any]:
        """Apply the steps in order; `Undecodable` names the step that is missing or failed.

        Copies the arguments first: a step may change its own.
        """
        if stored_version > current_version:
            raise Undecodable(
                f"task {self._task}: the arguments are of version {stored_version}, this worker knows "
                f"{current_version}; deploy the newer code to it"
            )
        if stored_version == current_version:
            return dict(arguments)
        raised = deepcopy(dict(arguments))
        for version in range(stored_version, current_version):
            raised = self._stepped(version, raised)
        return raised

    def _stepped(self, version: int, arguments: dict[str, Any]) -> dict[str, Any]:
        prefix = f"task {self._task}: upcast {version} -> {version + 1}"
        fn = self._steps.get(version)
        if fn is None:
            raise Undecodable(f"{prefix} is missing; declare it, or the arguments cannot be read")
        try:
            stepped: object = fn(arguments)
        except BaseException as error:
            # The error's text may quote an argument, so it is only the cause.
            raise Undecodable(f"{prefix} raised {type(error).__qualname__}") from error
        if not _is_arguments(stepped):
            raise Undecodable(f"{prefix} returned no dict with text keys")
        return stepped


def _is_arguments(value: object) -> TypeGuard[dict[str, Any]]:
    return type(value) is dict and all(type(key) is str for key in cast("dict[object, object]", value))
