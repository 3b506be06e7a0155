"""Where things are below the prefix that the application is mounted under. Knows no caller."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

API: Final = "/api/v1"
FORMS: Final = "/do"
SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
PROBES: Final = frozenset({"/livez", "/readyz", "/health"})


def prefix_of(scope: Scope) -> str:
    """Return the prefix: the empty text, or one that begins with a slash and ends without."""
    prefix: str = scope.get("root_path", "")
    return prefix.rstrip("/")


def path_below(scope: Scope) -> str:
    """Return the path of a request below the prefix.

    >>> path_below({"path": "/ops/api/v1/jobs", "root_path": "/ops"})
    '/api/v1/jobs'
    """
    path: str = scope["path"]
    return path.removeprefix(prefix_of(scope))


def is_api(scope: Scope) -> bool:
    """Whether a request is for programs, which are answered in JSON.

    >>> is_api({"path": "/api/v1/jobs"}), is_api({"path": "/apiary"})
    (True, False)
    """
    return path_below(scope).startswith("/api/")


def is_probe(scope: Scope) -> bool:
    """Whether a request asks how this process is."""
    return path_below(scope) in PROBES


def local_path(text: str, prefix: str) -> str:
    r"""Return a path of this application that a form or a link names; its first page for anything else.

    >>> local_path("/ops/jobs?q=a", "/ops"), local_path("/jobs", "")
    ('/ops/jobs?q=a', '/jobs')
    >>> {local_path(bad, "/ops") for bad in ("https://evil.example", "//evil.example", "/opsie", "/ops/\\e")}
    {'/ops/'}
    >>> local_path("//evil.example", ""), local_path("/a\r\nb: c", "")
    ('/', '/')
    """
    is_plain = text.isprintable() and "\\" not in text and not text.startswith("//")
    if is_plain and text.startswith(f"{prefix}/") and not text.startswith(f"{prefix}//"):
        return text
    return f"{prefix}/"
