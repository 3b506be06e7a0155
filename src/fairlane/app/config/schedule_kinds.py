"""The kinds of values of `[schedules]`. What they mean together is read by `schedules.reading`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final, cast

from fairlane.app.config.value_kinds import ValueKind, plain_text
from fairlane.app.schedules.reading import MOST_CAUGHT_UP


def _either(*kinds: type) -> Any:
    def read(value: Any) -> Any:
        if not isinstance(value, kinds) or value == "":
            raise ValueError
        return value

    return read


def _between(value: Any) -> tuple[Any, ...]:
    listed: list[Any] = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []
    if len(listed) != 2 or not all(isinstance(one, str | time) for one in listed):  # noqa: PLR2004 (a pair)
        raise ValueError
    return tuple(listed)


def _dates(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError  # noqa: TRY004 (as all kinds do)
    dates = tuple(cast("list[Any]", value))
    if not all(isinstance(one, str | date) and not isinstance(one, datetime) for one in dates):
        raise ValueError
    return dates


def _catch_up(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CAUGHT_UP
    if not is_number and not (isinstance(value, str) and value in {"skip", "latest"}):
        raise ValueError
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError  # noqa: TRY004 (as all kinds do)
    return dict(cast("Mapping[str, Any]", value))


def _shown(value: Any) -> str:
    return plain_text([str(one) for one in value])


MOMENT: Final = ValueKind(
    _either(str, datetime),
    '"2026-11-25T18:00", in the zone of the schedule, or with an offset',
    is_text=True,
    show=str,
)
BETWEEN: Final = ValueKind(_between, 'two times of day: ["09:30", "16:00"]', show=_shown)
DATES: Final = ValueKind(_dates, 'a list of dates: ["2026-12-25"]', show=_shown)
CATCH_UP: Final = ValueKind(_catch_up, f'"skip", "latest", or a number, 1 to {MOST_CAUGHT_UP}')
TABLE: Final = ValueKind(_table, "a table of values by name")
