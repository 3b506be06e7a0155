"""Values of every kind that a payload can hold, and what must be equal for them to be the same."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import strategies as st


class Colour(Enum):
    """A plain Enum, with an alias."""

    RED = "r"
    GREEN = "g"
    CRIMSON = "r"  # noqa: PIE796 (an alias, the case is about it)


class Size(StrEnum):
    """An Enum whose members are text."""

    S = "s"
    L = "l"


class Level(IntEnum):
    """An Enum whose members are integers."""

    LOW = 1


class Mode(Flag):
    """Flags."""

    READ = 1
    WRITE = 2
    RUN = 4


ENUMS: dict[str, type[Enum]] = {kind.__qualname__: kind for kind in (Colour, Size, Level, Mode)}

NAMES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (date, datetime, time, timedelta, timezone, Decimal, UUID, ZoneInfo, *ENUMS.values())
} | {"UTC": UTC}
"""What the `python` texts of the test vectors may use."""


def portrait(value: Any) -> Any:
    """Tell apart what `==` does not: types, signs of zero, exponents, folds, zones, the order of keys."""
    kind = type(value)
    if kind in {list, tuple}:
        return kind, [portrait(item) for item in value]
    if kind in {set, frozenset}:
        return kind, sorted((portrait(member) for member in value), key=repr)
    if kind is dict:
        return kind, [(key, portrait(item)) for key, item in value.items()]
    if kind in {datetime, time}:
        zone = value.tzinfo
        where = getattr(zone, "key", None), zone and zone.tzname(None), value.utcoffset()
        return kind, value.replace(tzinfo=None).isoformat(), value.fold, type(zone), where
    return kind, repr(value)


_BERLIN = ZoneInfo("Europe/Berlin")
_offsets = st.builds(timedelta, microseconds=st.integers(-86_399_999_999, 86_399_999_999)) | st.builds(
    timedelta, hours=st.integers(-23, 23)
)
_fixed = st.builds(timezone, _offsets) | st.builds(timezone, _offsets, st.text(max_size=5)) | st.just(UTC)
_zones = _fixed | st.sampled_from(
    [
        ZoneInfo(key)
        for key in ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
    ]
)
_moments = st.builds(
    lambda moment, fold: moment.replace(fold=fold),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=_zones)  # noqa: DTZ001 (bounds)
    # The hours around the clock changes of 2026 in Berlin, in both of which local times are special.
    | st.builds(
        lambda day, minute: day + timedelta(minutes=minute),
        st.sampled_from([datetime(2026, 3, 29, tzinfo=_BERLIN), datetime(2026, 10, 25, tzinfo=_BERLIN)]),
        st.integers(0, 300),
    ),
    st.integers(0, 1),
)
_times = st.builds(
    lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold),
    st.times(),
    st.none() | _fixed,
    st.integers(0, 1),
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | _moments
    | st.dates()
    | _times
    | st.timedeltas(timedelta(days=-100_000_000), timedelta(days=100_000_000))
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.binary(max_size=20)
    | st.sampled_from([*Colour, *Size, *Level, *Mode, Mode(0), Mode.READ | Mode.RUN])
)
keys = st.text(max_size=8) | st.sampled_from(["$", "$dict", "$date", "$x", "zone"])
_members = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(_members, max_size=4)
        | st.frozensets(_members, max_size=4)
    ),
    max_leaves=12,
)
arguments = st.dictionaries(keys, values, max_size=4)
