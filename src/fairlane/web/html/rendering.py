"""Render pages: everything is escaped, and nothing is read from outside the package.

Every template has, beside the values of its page:

- `call`: who asks, and for what; `personal`: what the user chose; `page`: which page it is; `path`: its path
  below the prefix, with its query
- `url(path)` and `static(name)`: URLs below the prefix; `may(name)`: whether the caller may use an endpoint,
  False also for one that does not exist
- `at(moment)` and `ago(moment)`: a time, and a time that is shown by its distance from now
- the filters `number`, `at_most`, `duration`, `rate`, `plural`, `megabytes`, `short_id`, and `redacted` for
  free texts, which may quote secrets
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from fairlane.app.admin.read_once import read_once
from fairlane.app.redaction import REDACTED
from fairlane.model.instants import to_datetime
from fairlane.model.policy.rate_text import write_rate
from fairlane.runtime.clock import MachineClock
from fairlane.web.call import WebCall
from fairlane.web.html.assets import asset_url
from fairlane.web.html.navigation import navigation
from fairlane.web.html.slot_marks import marks_in_words
from fairlane.web.html.words import (
    TimeText,
    at_most,
    code,
    day_words,
    duration,
    in_zone,
    megabytes,
    moment_words,
    number,
    plural,
    queue_colour,
    run_words,
    short_id,
)
from fairlane.web.locations import path_below, prefix_of
from fairlane.web.page import PageView, WebPage
from fairlane.web.personal import personal_of
from fairlane.web.reading import read_form, read_path, read_query


@cache
def environment() -> Environment:
    """Return the templates of the package. A name that a page forgot is an error, not an empty text."""
    made = Environment(
        loader=PackageLoader("fairlane.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Callable[..., Any]] = {
        "number": number,
        "at_most": at_most,
        "duration": duration,
        "plural": plural,
        "megabytes": megabytes,
        "short_id": short_id,
        "redacted": REDACTED.text,
        "queue_colour": _queue_colour,
        "pattern": re.escape,
        "code": code,
        "rate": write_rate,
        "marks_in_words": marks_in_words,
        "in_zone": in_zone,
        "moment_words": moment_words,
        "day": day_words,
        "run_words": run_words,
    }
    known: dict[str, Any] = made.filters
    known.update(filters)
    return made


@pass_context
def _queue_colour(context: Context, name: str) -> str:
    """Return the colour that marks a queue: the one that its application or the file has chosen."""
    queue = context["call"].app.client.settings.queues.get(name)
    return queue_colour(name) if queue is None or queue.color is None else queue.color


async def show(call: WebCall, page: WebPage) -> Response:
    """Return the answer to a request for a page. Call it inside `call.acting("web")`.

    A page that only shows reads the counters once, however many of its parts need them.
    """
    with read_once() if page.method == "GET" else nullcontext():
        return await _show(call, page)


async def _show(call: WebCall, page: WebPage) -> Response:
    call = msgspec.structs.replace(call, is_for_page=True)
    values: dict[str, Any] = read_path(call.request.path_params, page.fields)
    if page.query is not None and page.method == "GET":
        values["query"] = read_query(call.request.query_params, page.query)
    elif page.query is not None:
        form = await call.request.form()
        pairs = [(name, text) for name, text in form.multi_items() if isinstance(text, str)]
        values["query"] = read_form(pairs, page.query)
    view = await page.handler(call, **values)
    if isinstance(view, Response):
        return view
    is_kept = view.status < 400 and page.method == "GET"  # noqa: PLR2004 (the first of the errors)
    html = await render(call, view, page if is_kept else None)
    headers = None if page.method == "GET" else {"cache-control": "no-store"}
    return HTMLResponse(html, status_code=view.status, headers=headers)


async def render(call: WebCall, view: PageView, page: WebPage | None = None) -> str:
    """Return a view as HTML; without a page, as an error is shown, nothing of it is kept current."""
    path = local_path(call)
    entries = await navigation(call, path.partition("?")[0])
    template = environment().get_template(view.template)
    return template.render(**_shared(call), page=page, path=path, navigation=entries, **view.values)


def render_plain(scope: Scope, template: str, **values: Any) -> str:
    """Return a page that needs no caller: signing in, an error."""
    cookies = Request(scope).cookies
    links = _links(scope)
    return environment().get_template(template).render(personal=personal_of(cookies), **links, **values)


def local_path(call: WebCall) -> str:
    """Return the path and the query of a request, below the prefix of the application."""
    query = call.request.url.query
    return path_below(call.request.scope) + (f"?{query}" if query else "")


def _shared(call: WebCall) -> Mapping[str, Any]:
    personal = personal_of(call.request.cookies)
    clock = TimeText(personal.zone, to_datetime(MachineClock().wall()))
    return {
        "call": call,
        "personal": personal,
        "may": call.may,
        "at": clock.at,
        "ago": clock.ago,
        **_links(call.request.scope),
    }


def _links(scope: Scope) -> Mapping[str, Any]:
    """Return what templates link with."""
    prefix = prefix_of(scope)

    def url(path: str) -> str:
        return prefix + path

    def static(name: str) -> str:
        return asset_url(prefix, name)

    return {"url": url, "static": static}
