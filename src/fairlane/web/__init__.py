"""The web: REST API and dashboard, a way in above `app`. It has no store access of its own.

One declaration per endpoint (`declare`) gives the route, its permission, its types, its documentation and
the form that a page sends to it. One declaration per page (`page`) gives its route and its permission. Start
reading in `application`, which makes the routes, and in `call`: what a handler is given.

    application      every route; `site` and `call` are what all requests and one request share
    declare, page    what an endpoint and a page are declared with
    api/, pages/     their handlers, a file for each subject
    access/          who the caller is, sign-in, permissions
    forms/           `POST /do/{endpoint}`: what a page sends to an endpoint
    html/            what pages are made of: templates, texts, drawings, assets
    http/            what is true of every request: id, proxy, host, rate, probes, errors
    live             keeps open pages current
    serve            runs all of it as a process

**Who may do what.** A request is first given its caller (`Principal`). Then it is held to the role and the
tenant rule of what it asks for. A caller that is bound to a tenant runs inside `app.tenant(...)`: every call
has the scope of that tenant, as in a job's handler (S9). What concerns all tenants raises `InsideTenant`,
which is answered as if it did not exist.
"""

from __future__ import annotations

try:
    from fairlane.web.access.callers import StoredCallers
    from fairlane.web.application import asgi
    from fairlane.web.site import Authenticate
except ModuleNotFoundError as error:
    package = str(error.name).partition(".")[0]
    if package in {"fairlane", "None"}:
        raise
    message = f"fairlane.web needs {package}; install it with: pip install 'fairlane[web]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from fairlane.model.access import Principal, Role

__all__ = ["Authenticate", "Principal", "Role", "StoredCallers", "asgi"]
