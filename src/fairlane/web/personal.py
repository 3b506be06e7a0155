"""What a user chooses for itself: theme, time zone, how often pages change, keys. Kept in a cookie."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import parse_qs, urlencode
from zoneinfo import available_timezones

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fairlane.web.declare import Body
from fairlane.web.reading import bad_field, read_fields

COOKIE: Final = "fairlane_personal"
_YEAR: Final = 365 * 86_400

Theme: TypeAlias = Literal["system", "light", "dark"]
Refresh: TypeAlias = Literal["1", "5", "15", "off"]
Keys: TypeAlias = Literal["on", "off"]
Range: TypeAlias = Literal["15m", "1h", "6h", "24h", "7d"]

RANGES: Final[Mapping[Range, timedelta]] = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "theme": get_args(Theme),
    "refresh": get_args(Refresh),
    "keys": get_args(Keys),
    "range": get_args(Range),
}


class Personal(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of one user in one browser.

    `refresh` is how many seconds lie between two changes of a page, at least. `range` is how far back pages
    look that count what happened, unless their URL says otherwise.
    """

    theme: Theme = "system"
    zone: str = "UTC"
    refresh: Refresh = "1"
    keys: Keys = "on"
    range: Range = "24h"


class _Change(Body, frozen=True, kw_only=True):
    theme: Theme | None = None
    zone: str | None = None
    refresh: Refresh | None = None
    keys: Keys | None = None
    range: Range | None = None
    next: str = "/"


@cache
def zones() -> tuple[str, ...]:
    """Return the names of all time zones, UTC first."""
    return ("UTC", *sorted(available_timezones() - {"UTC", "localtime", "Factory"}))


def personal_of(cookies: Mapping[str, str]) -> Personal:
    """Return what a browser sent; what cannot be understood counts as not chosen.

    >>> personal_of({COOKIE: "theme=dark&zone=Mars%2FOlympus"})
    Personal(theme='dark', zone='UTC', refresh='1', keys='on', range='24h')
    """
    default = Personal()
    given = {name: values[-1] for name, values in parse_qs(cookies.get(COOKIE, "")).items()}
    known = {name: text for name, text in given.items() if text in CHOICES.get(name, ())}
    if given.get("zone") in zones():
        known["zone"] = given["zone"]
    return msgspec.convert(msgspec.structs.asdict(default) | known, Personal)


async def choose(request: Request) -> Response:
    """Keep what a form chose and go back to the page it was sent from."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    change = read_fields(form, _Change, is_text=True)
    if change.zone is not None and change.zone not in zones():
        raise bad_field("zone", "is not a time zone", "give its name, as in Europe/Vienna")
    chosen = msgspec.structs.asdict(change)
    root: str = request.scope.get("root_path", "")
    target = chosen.pop("next")
    if not target.startswith("/") or target.startswith("//") or "\\" in target:
        target = root + "/"
    given = {name: value for name, value in chosen.items() if value is not None}
    value = urlencode(msgspec.structs.asdict(personal_of(request.cookies)) | given)
    response = RedirectResponse(target, status_code=303)
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, value, max_age=_YEAR, path=root or "/", secure=secure, httponly=True, samesite="strict"
    )
    return response
