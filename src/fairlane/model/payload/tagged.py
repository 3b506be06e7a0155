"""Encode values that JSON lacks (dates, decimals, bytes, …) as tagged objects, and decode them (S5).

Knows no containers, paths, limits or Enums. Decoding accepts exactly what encoding produces: one value has
one text. Time zone names are looked up in the system's database, the only outside dependency.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn, TypeAlias, cast
from uuid import UUID
from zoneinfo import ZoneInfo

Node: TypeAlias = dict[str, Any]

INT64: Final = 1 << 63
"""Encoded integers are in [-INT64, INT64)."""

_MICRO = timedelta(microseconds=1)
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 (to reckon with offsets, in no zone)
_CLOCK = len("hh:mm:ss.ffffff")
_USE_ZONEINFO = "use zoneinfo.ZoneInfo or datetime.timezone"


class Unwritable(ValueError):  # noqa: N818 (it never leaves the model)
    """A value that would not round-trip: what it is, and what to do instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Unreadable(ValueError):  # noqa: N818 (it never leaves the model)
    """A tagged object that encoding never produces. The message does not contain it."""


def is_utf8(text: str) -> bool:
    r"""Whether text can be encoded as UTF-8; a lone surrogate cannot.

    >>> is_utf8("größe"), is_utf8("\ud800")
    (True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_object(value: object) -> Node | None:
    """Return decoded JSON as an object; None if it is none."""
    return cast("Node", value) if isinstance(value, dict) else None


def as_array(value: object) -> list[object] | None:
    """Return decoded JSON as an array; None if it is none."""
    return cast("list[object]", value) if isinstance(value, list) else None


# --- datetime and time -------------------------------------------------------------------------------


def _instant_text(utc: datetime) -> str:
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _offset_text(zone: timezone) -> str:
    return _SOME_DAY.replace(tzinfo=zone).isoformat()[len(_SOME_DAY.isoformat()) :]


def _own_name(zone: timezone) -> Node:
    """Return the name of a fixed offset, if it has one."""
    name = str(zone.tzname(None))
    if name == timezone(zone.utcoffset(None)).tzname(None):
        return {}
    if not is_utf8(name):
        raise Unwritable("has a time zone whose name has a lone surrogate", "name it in valid Unicode")
    return {"name": name}


def _zone_info(key: str) -> ZoneInfo:
    try:
        return ZoneInfo(key)
    except (KeyError, ValueError, OSError):  # absent, malformed, or a folder of the database
        raise Unreadable("names a time zone that this machine does not know") from None


def _write_zone(zone: tzinfo | None) -> Node:
    if zone is UTC:
        return {}
    if type(zone) is timezone:
        return {"zone": _offset_text(zone)} | _own_name(zone)
    if type(zone) is not ZoneInfo:
        raise Unwritable("is a datetime whose tzinfo is of another kind", _USE_ZONEINFO)
    try:
        return {"zone": _zone_info(str(zone.key)).key}
    except Unreadable:
        raise Unwritable("is a datetime in a time zone without a known IANA key", _USE_ZONEINFO) from None


def _write_datetime(moment: datetime) -> Node:
    if moment.tzinfo is None:
        raise Unwritable("is a datetime without a time zone", "give it one, e.g. datetime.now(UTC)")
    zone = _write_zone(moment.tzinfo)
    try:
        utc = moment.astimezone(UTC).replace(fold=0)  # what is in UTC already would keep its fold
        local = utc.astimezone(moment.tzinfo)
    except OverflowError:
        raise Unwritable("is a datetime outside the years 1 to 9999 in UTC", "move it inside") from None
    node: Node = {"$datetime": _instant_text(utc)} | zone
    # The instant and the zone say it all, except for a wall time that a clock change leaves out and for a
    # fold that means nothing at that time: both are legal in Python and must come back.
    wall = moment.replace(tzinfo=None)
    if wall != local.replace(tzinfo=None):
        node["wall"] = wall.isoformat(timespec="microseconds")
    if moment.fold != local.fold:
        node["fold"] = moment.fold
    return node


def _text(node: Mapping[str, Any], field: str) -> str:
    value = node[field]
    if type(value) is not str:
        raise Unreadable(f"has a {field} that is not text")
    return value


def _read_offset(text: str, node: Mapping[str, Any]) -> timezone:
    # By hand: fromisoformat of the whole reads an offset below one second as UTC.
    clock = time.fromisoformat(text[1:]).replace(tzinfo=None)
    offset = datetime.combine(_SOME_DAY, clock) - _SOME_DAY
    zone = timezone(-offset if text[0] == "-" else offset)
    if _offset_text(zone) != text:
        raise Unreadable("has an offset that is not of the form +HH:MM")
    return timezone(zone.utcoffset(None), _text(node, "name")) if "name" in node else zone


def _read_zone(node: Mapping[str, Any]) -> tzinfo:
    text = _text(node, "zone") if "zone" in node else ""
    if text[:1] in {"+", "-"}:
        return _read_offset(text, node)
    _no_name(node)
    return _zone_info(text) if "zone" in node else UTC


def _no_name(node: Mapping[str, Any]) -> None:
    if "name" in node:
        raise Unreadable("has a name without an offset")


def _read_fold(node: Mapping[str, Any], otherwise: int) -> int:
    fold = node.get("fold", otherwise)
    if type(fold) is not int or fold not in {0, 1}:
        raise Unreadable("has a fold that is not 0 or 1")
    return fold


def _read_wall(node: Mapping[str, Any], otherwise: datetime) -> datetime:
    if "wall" not in node:
        return otherwise
    text = _text(node, "wall")
    wall = datetime.fromisoformat(text)
    return wall if wall.isoformat(timespec="microseconds") == text else _bad_form("$datetime")


def _read_datetime(node: Mapping[str, Any]) -> datetime:
    text = _text(node, "$datetime")
    utc = datetime.fromisoformat(text)
    if utc.tzinfo is not UTC or _instant_text(utc) != text:
        _bad_form("$datetime")
    local = utc.astimezone(_read_zone(node))
    if "wall" not in node and "fold" not in node:
        return local
    wall = _read_wall(node, local.replace(tzinfo=None))
    exact = wall.replace(tzinfo=local.tzinfo, fold=_read_fold(node, local.fold))
    # The zone's rules may have changed since: the instant is what the caller meant.
    return exact if exact.astimezone(UTC) == utc else local


def _write_time(value: time) -> Node:
    zone = value.tzinfo
    if zone is not None and type(zone) is not timezone:
        raise Unwritable(
            "is a time in a zone, whose offset depends on the day",
            "use a naive time and send the zone's name beside it, or a fixed datetime.timezone",
        )
    node: Node = {"$time": value.isoformat(timespec="microseconds")}
    if value.fold:
        node["fold"] = value.fold
    return node if zone is None else node | _own_name(zone)


def _read_time(node: Mapping[str, Any]) -> time:
    text = _text(node, "$time")
    clock, offset = text[:_CLOCK], text[_CLOCK:]
    value = time.fromisoformat(clock)
    if value.isoformat(timespec="microseconds") != clock:
        _bad_form("$time")
    if not offset:
        _no_name(node)
    zone = _read_offset(offset, node) if offset else None
    return value.replace(tzinfo=zone, fold=_read_fold(node, 0))


# --- the others --------------------------------------------------------------------------------------


def _bad_form(tag: str) -> NoReturn:
    raise Unreadable(f"is not of the form that {tag} has")


def _write_timedelta(value: timedelta) -> Node:
    micros = value // _MICRO
    if not -INT64 <= micros < INT64:
        raise Unwritable("is a timedelta beyond 64 bits of microseconds", "use None for 'without end'")
    return {"$timedelta": micros}


def _read_timedelta(node: Mapping[str, Any]) -> timedelta:
    micros = node["$timedelta"]
    if type(micros) is not int or not -INT64 <= micros < INT64:
        _bad_form("$timedelta")
    return timedelta(microseconds=micros)


def _write_decimal(value: Decimal) -> Node:
    if not value.is_finite():
        raise Unwritable("is a Decimal that is not a number or not finite", "send None or text instead")
    return {"$decimal": str(value)}


def _written_alike(
    tag: str, read: Callable[[str], Any], write: Callable[[Any], str]
) -> Callable[[Node], Any]:
    """Return a reader of text that refuses any other than the canonical one."""

    def reader(node: Mapping[str, Any]) -> Any:
        text = _text(node, tag)
        value = read(text)
        return value if write(value) == text else _bad_form(tag)

    return reader


def _finite(text: str) -> Decimal:
    value = Decimal(text)
    return value if value.is_finite() else _bad_form("$decimal")


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


WRITERS: Final[Mapping[type, Callable[[Any], Node]]] = {
    datetime: _write_datetime,
    date: lambda value: {"$date": value.isoformat()},
    time: _write_time,
    timedelta: _write_timedelta,
    Decimal: _write_decimal,
    UUID: lambda value: {"$uuid": str(value)},
    bytes: lambda value: {"$bytes": _base64(value)},
}
"""By exact type: a subclass would decode as its base."""

_READERS: Final[Mapping[str, Callable[[Node], Any]]] = {
    "$datetime": _read_datetime,
    "$date": _written_alike("$date", date.fromisoformat, date.isoformat),
    "$time": _read_time,
    "$timedelta": _read_timedelta,
    "$decimal": _written_alike("$decimal", _finite, str),
    "$uuid": _written_alike("$uuid", UUID, str),
    "$bytes": _written_alike("$bytes", b64decode, _base64),
}

_BESIDE: Final[Mapping[str, frozenset[str]]] = {
    "$datetime": frozenset({"zone", "name", "wall", "fold"}),
    "$time": frozenset({"name", "fold"}),
}
"""Fields that may accompany a tag."""

TAGS: Final = frozenset(_READERS)


def read_tagged(tag: str, node: Node) -> Any:
    """Decode one tagged object; `Unreadable` says what is wrong and never shows it.

    >>> read_tagged("$timedelta", {"$timedelta": 1_500_000})
    datetime.timedelta(seconds=1, microseconds=500000)
    >>> read_tagged("$date", {"$date": "20260102"})
    Traceback (most recent call last):
    fairlane.model.payload.tagged.Unreadable: is not of the form that $date has
    """
    if not node.keys() <= _BESIDE.get(tag, frozenset()) | {tag}:
        raise Unreadable(f"has fields that {tag} does not have")
    try:
        return _READERS[tag](node)
    except Unreadable:
        raise
    except (ValueError, InvalidOperation, OverflowError):
        # Their messages quote what they could not read.
        raise Unreadable(f"is not of the form that {tag} has") from None
