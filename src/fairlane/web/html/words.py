"""Write numbers, times and durations as the pages show them. Asks no store and knows no request."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from zlib import crc32
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from fairlane.model.policy.declared import COLORS
from fairlane.model.schedule.words import city

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_DAY: Final = 86_400


def number(value: float) -> str:
    """Return a number with separators.

    >>> number(41002), number(2.5)
    ('41,002', '2.5')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def at_most(value: int, most: int = 10_000) -> str:
    """Return a count of which only so much was looked at.

    >>> at_most(9_999), at_most(10_000), at_most(41_002)
    ('9,999', '10,000', '10,000+')
    """
    return number(value) if value <= most else f"{number(most)}+"


def duration(value: timedelta | float) -> str:
    """Return a duration with at most two units.

    >>> duration(0.0042), duration(3.04), duration(66), duration(7_500), duration(timedelta(days=3))
    ('4 ms', '3.0 s', '1 min 6 s', '2 h 5 min', '3 d')
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 0:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 (seconds of a minute)
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 (one digit)
    for index, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            smaller, name = (*_UNITS, (1, "s"))[index + 1]
            part = rest // smaller
            return f"{whole} {unit}" + (f" {part} {name}" if part else "")
    raise AssertionError("a minute or more has a unit")


def megabytes(value: int) -> str:
    """Return an amount of memory.

    >>> megabytes(61_400_000), megabytes(3_250_000_000)
    ('61 MB', '3,250 MB')
    """
    return f"{value / 1_000_000:,.0f} MB"


def plural(count: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "job"), plural(1200, "job"), plural(2, "failure has", "failures have")
    ('1 job', '1,200 jobs', '2 failures have')
    """
    return f"{number(count)} {one if count == 1 else several or one + 's'}"


def code(text: str) -> Markup:
    """Return a text with what stands in backticks as code.

    >>> code("`app.jobs.run_now(id)` skips <the> wait.")
    Markup('<code>app.jobs.run_now(id)</code> skips &lt;the&gt; wait.')
    """
    parts = str(escape(text)).split("`")
    marked = (f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
    return Markup("".join(marked))  # noqa: S704 (escaped above)


def short_id(id: Any) -> str:
    """Return the end of an id, by which people find it again.

    >>> short_id("01a1e9e4-b446-7c41-909a-7d2be5b33e81")
    'b33e81'
    """
    return str(id)[-6:]


def queue_colour(name: str) -> str:
    """Return the colour of a queue for which nobody has chosen one: that of its name.

    >>> queue_colour("bulk") == queue_colour("bulk")
    True
    """
    return COLORS[crc32(name.encode()) % len(COLORS)]


def in_zone(moment: datetime, zone: str) -> datetime:
    """Return an instant as the clocks of a zone show it."""
    return moment.astimezone(ZoneInfo(zone))


def moment_words(local: datetime) -> str:
    """Return a local time with its day.

    >>> moment_words(datetime(2026, 11, 25, 9, 30))
    'Wed 25 Nov 09:30:00'
    """
    return f"{local:%a} {local.day} {local:%b %H:%M:%S}"


def day_words(local: datetime) -> str:
    """Return the day of a local time.

    >>> day_words(datetime(2026, 3, 8, 3, 0))
    'Sun 8 Mar 2026'
    """
    return f"{local:%a} {local.day} {local:%b %Y}"


def run_words(moment: datetime, zone: str) -> str:
    """Return a run in its own zone, and in UTC if that is another.

    >>> from datetime import UTC
    >>> run_words(datetime(2026, 11, 25, 14, 30, tzinfo=UTC), "America/New_York")
    'Wed 25 Nov 09:30:00 New York, 14:30 UTC'
    >>> run_words(datetime(2026, 11, 25, 14, 30, tzinfo=UTC), "UTC")
    'Wed 25 Nov 14:30:00 UTC'
    """
    local = f"{moment_words(in_zone(moment, zone))} {city(zone)}"
    return local if zone == "UTC" else f"{local}, {moment:%H:%M} UTC"


class TimeText:
    """Writes instants in the time zone that a user has chosen."""

    def __init__(self, zone: str, now: datetime) -> None:
        self._zone = ZoneInfo(zone)
        self._zone_name = zone
        self._now = now

    def at(self, moment: datetime | None, *, none: str = "–") -> Markup | str:
        """Return an instant: the time, and the date if it is more than half a day away."""
        return none if moment is None else self._element(moment, "")

    def ago(self, moment: datetime | None, *, none: str = "–") -> Markup | str:
        """Return an instant that is shown by its distance from now, which a script keeps up."""
        return none if moment is None else self._element(moment, " data-age")

    def _element(self, moment: datetime, mark: str) -> Markup:
        local = moment.astimezone(self._zone)
        whole = f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03} {self._zone_name}"
        when = moment.isoformat(timespec="milliseconds")
        # All parts are numbers and names of zones: nothing here comes from a user.
        return Markup(f'<time datetime="{when}" title="{whole}"{mark}>{self._text(local)}</time>')  # noqa: S704

    def _text(self, local: datetime) -> str:
        if abs((local - self._now).total_seconds()) < _DAY / 2:
            return f"{local:%H:%M:%S}"
        if local.year == self._now.astimezone(self._zone).year:
            return f"{local:%d %b %H:%M}".lstrip("0")
        return f"{local:%d %b %Y}".lstrip("0")
