"""Take forms: `POST /do/{endpoint}` does what the endpoint does, then leads back to a page.

The same handler, the same permission and the same checks as for programs; only the form differs that values
come in and answers go out. Works without scripts; to htmx it answers with an address, or a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from fairlane.model.errors import Problem
from fairlane.web.api.job_bulk import BulkReply, bulk_text
from fairlane.web.call import WebCall
from fairlane.web.declare import Endpoint
from fairlane.web.forms.flash import Flash
from fairlane.web.http.error_response import HTMX, error_line, error_text, logged_problem
from fairlane.web.locations import local_path, prefix_of
from fairlane.web.reading import BadRequest, read_form, read_path

NEXT: Final = "next"
"""The field that says which page comes afterwards."""

FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 1_000

Pairs: TypeAlias = Sequence[tuple[str, str]]


def form_pairs(content_type: str, data: bytes) -> Pairs:
    """Read the fields of a form in order.

    >>> form_pairs("application/x-www-form-urlencoded; charset=utf-8", b"note=a+b&ids=1&ids=")
    [('note', 'a b'), ('ids', '1'), ('ids', '')]
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise BadRequest([Problem(0, "body", "is no form", f"send it as {FORM}")], status=415)
    try:
        return parse_qsl(
            data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:  # also if it is no text
        raise BadRequest([Problem(0, "body", "is no form", f"send it as {FORM}")], status=400) from None


async def form_of(call: WebCall) -> Pairs:
    """Read the form that a request sends."""
    return form_pairs(call.request.headers.get("content-type", ""), await call.request.body())


class FormDone(msgspec.Struct, frozen=True):
    """What a form did: what to say about it, and the page that comes next, if the endpoint names one."""

    text: str
    place: str = ""


async def submit(call: WebCall, endpoint: Endpoint, pairs: Pairs) -> FormDone | Response:
    """Do what an endpoint does with the values of a form; return what was done, or the endpoint's answer."""
    sent = [pair for pair in pairs if pair[0] != NEXT]
    in_path = {name: text for name, text in sent if name in endpoint.fields}
    missing = [name for name in endpoint.fields if not in_path.get(name)]
    if missing:
        raise BadRequest([Problem(0, name, "is missing", "send it", "required") for name in missing])
    values: dict[str, Any] = read_path(in_path, endpoint.fields)
    rest = [pair for pair in sent if pair[0] not in endpoint.fields]
    if endpoint.query is not None:
        names = {field.encode_name for field in msgspec.structs.fields(endpoint.query)}
        values["query"] = read_form([pair for pair in rest if pair[0] in names], endpoint.query)
        rest = [pair for pair in rest if pair[0] not in names]
    if endpoint.body is not None:
        values["body"] = read_form(rest, endpoint.body)
    elif any(text for _, text in rest):
        raise BadRequest([Problem(0, rest[0][0], "is not known", "leave it out", "unknown")])
    with call.acting("web"):
        reply = await endpoint.handler(call, **values)
    if isinstance(reply, Response):
        return reply
    text = endpoint.done.format_map(in_path) if endpoint.done else f"Done: {endpoint.summary}"
    place = endpoint.leads_to.format_map(msgspec.to_builtins(reply)) if endpoint.leads_to else ""
    return FormDone(f"{text} {bulk_text(reply)}" if isinstance(reply, BulkReply) else text, place)


def after_form(call: WebCall, pairs: Pairs, done: FormDone) -> Response:
    """Lead to the page that comes after a form, with what it did."""
    prefix = prefix_of(call.request.scope)
    after = [(NEXT, prefix + done.place)] if done.place else pairs
    return _leading(call, after, Flash("done", done.text))


def after_error(call: WebCall, pairs: Pairs, error: Exception) -> Response:
    """Say beside the form what was wrong; without scripts, on the page that it leads to."""
    problem, headers = logged_problem(call.request.scope, error)
    if HTMX in call.request.headers:
        return error_line(problem, headers)
    return _leading(call, pairs, Flash("error", error_text(problem)))


def _leading(call: WebCall, pairs: Pairs, flash: Flash) -> Response:
    scope = call.request.scope
    place = local_path(dict(pairs).get(NEXT, ""), prefix_of(scope))
    response = _to(scope, place)
    call.site.flashes.set(response, scope, flash)
    return response


def _to(scope: Scope, place: str) -> Response:
    if HTMX in Headers(scope=scope):
        return Response(status_code=204, headers={"hx-redirect": place})
    return RedirectResponse(place, status_code=303)
