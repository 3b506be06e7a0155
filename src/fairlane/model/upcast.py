"""Bring arguments that were stored by an older version of a task up to today's (PRODUCT 2.4).

Pure: the steps are the application's functions, one for each version that arguments may still have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias, TypeGuard, cast

from fairlane.model.reading import Undecodable

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the arguments as version n had them and gives them as version n + 1 has them."""


class Upcasters:
    """The steps of one task, each from one version to the next.

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
        """Declare the step from a version to the next; each may be declared once."""
        if from_version < 1:
            raise ValueError(f"task {self._task}: upcast from version {from_version}; versions start at 1")
        if from_version in self._steps:
            raise ValueError(f"task {self._task}: upcast from version {from_version} is declared twice")
        self._steps[from_version] = fn

    def check(self, current_version: int) -> None:
        """Refuse, when the task is registered, steps that cannot lead to its version.

        The oldest steps may be gone, once nothing so old is queued any more; the rest must have no gap.

        >>> steps = Upcasters("mail.send")
        >>> steps.add(1, dict)
        >>> steps.check(3)
        Traceback (most recent call last):
        ValueError: task mail.send is version 3, but has no upcast from version 2
        """
        said = f"task {self._task} is version {current_version}, but has"
        beyond = [version for version in sorted(self._steps) if version >= current_version]
        if beyond:
            raise ValueError(f"{said} an upcast from version {beyond[0]}; raise the task's version")
        for version in range(min(self._steps, default=current_version), current_version):
            if version not in self._steps:
                raise ValueError(f"{said} no upcast from version {version}")

    def oldest(self, current_version: int) -> int:
        """Give the oldest version that can still be read.

        >>> Upcasters("mail.send").oldest(3)
        3
        """
        return min(self._steps, default=current_version)

    def upcast(
        self, arguments: Mapping[str, Any], stored_version: int, current_version: int
    ) -> dict[str, Any]:
        """Apply the steps in order; `Undecodable` names the one that is missing or went wrong.

        The given arguments stay as they are, whatever a step does to its own.
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
        said = f"task {self._task}: upcast {version} -> {version + 1}"
        fn = self._steps.get(version)
        if fn is None:
            raise Undecodable(f"{said} is missing; declare it, or the arguments cannot be read")
        try:
            stepped: object = fn(arguments)
        except BaseException as error:
            # The error's own text may quote an argument; it stays behind, as the cause.
            raise Undecodable(f"{said} raised {type(error).__qualname__}") from error
        if not _is_arguments(stepped):
            raise Undecodable(f"{said} returned no dict with text keys")
        return stepped


def _is_arguments(value: object) -> TypeGuard[dict[str, Any]]:
    return type(value) is dict and all(type(key) is str for key in cast("dict[object, object]", value))
