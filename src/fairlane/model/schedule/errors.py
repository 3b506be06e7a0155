"""What can go wrong with a schedule."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.errors import FairlaneError, InvalidJob, Problem, Refused


class InvalidSchedule(InvalidJob):
    """A schedule cannot be saved, and nothing was changed. `problems` lists every bad field."""

    def __init__(self, problems: Iterable[Problem], name: str = "") -> None:
        """Show all problems, one per line."""
        found = tuple(problems)
        lines = "\n".join(f"  {problem.text}" for problem in found)
        what = f"schedule {name} was not saved" if name else "the schedule was not saved"
        super().__init__(found, f"{what}, {len(found)} problem(s):\n{lines}")
        self.name = name


class ScheduleNotFound(FairlaneError, LookupError):
    """There is no schedule of this name, for this tenant."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name}; `fairlane schedules list` shows those that there are")
        self.name = name


class ScheduleExists(Refused):
    """A schedule of this name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name} already; edit it, or add one with another name")
        self.name = name
