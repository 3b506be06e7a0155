"""Decide which names are legal (S3). Refuses and never repairs: nothing is trimmed or normalised (S4)."""

from __future__ import annotations

import re

from fairlane.model.errors import InvalidJob, Problem

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_TASK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
_TENANT = re.compile(r"""(?!-)[^\x00-\x20\x7f-\U0010ffff{}"'`*?\\/]{1,128}""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

LABEL_BYTES = 255
"""The longest key, correlation id, `created_by` or tag, in bytes of UTF-8."""

TEXT_CHARS = 2_000
"""The longest reason or note."""

_NOT_IN_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_NAME_HINT = "use 1 to 63 of a-z, 0-9, _ . - and start with a letter or digit"
_TASK_HINT = "use 1 to 200 of A-Z, a-z, 0-9, _ . : - and start with a letter, digit or _"
_TENANT_HINT = (
    "use 1 to 128 printable ASCII characters without space, braces, quotes, * ? \\ / and not starting with -"
)
_TEXT_HINT = f"use at most {TEXT_CHARS:,}, and no control characters but newline and tab"
_LABEL_HINT = f"use 1 to {LABEL_BYTES} bytes of UTF-8 without control characters"


def name_hint(name: object) -> str | None:
    """Return what a queue, gate, schedule or lane name needs; None if it is legal.

    >>> name_hint("bulk"), name_hint("Bulk")
    (None, 'use 1 to 63 of a-z, 0-9, _ . - and start with a letter or digit')
    """
    return None if isinstance(name, str) and _NAME.fullmatch(name) else _NAME_HINT


def task_hint(name: object) -> str | None:
    """Return what a task name needs; None if it is legal."""
    return None if isinstance(name, str) and _TASK.fullmatch(name) else _TASK_HINT


def tenant_hint(name: object) -> str | None:
    """Return what a tenant name needs; None if it is legal.

    >>> tenant_hint("acme:42@eu"), tenant_hint("-acme") is None
    (None, False)
    """
    return None if isinstance(name, str) and _TENANT.fullmatch(name) else _TENANT_HINT


def label_hint(label: object) -> str | None:
    """Return what a key, correlation id, `created_by` or tag needs; None if it is legal.

    >>> label_hint("fax-7"), label_hint("a" * 256) is None
    (None, False)
    """
    if not isinstance(label, str) or not label or _CONTROL.search(label):
        return _LABEL_HINT
    try:
        size = len(label.encode())
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8
        return _LABEL_HINT
    return None if size <= LABEL_BYTES else _LABEL_HINT


def text_hint(text: object) -> str | None:
    r"""Return what a free text (a reason, a note, who acts) needs; None if it is legal.

    >>> text_hint("ordered twice,\nsays Ann"), text_hint("a" * 2_001) is None, text_hint("\x00") is None
    (None, False, False)
    """
    if not isinstance(text, str) or len(text) > TEXT_CHARS or _NOT_IN_TEXT.search(text):
        return _TEXT_HINT
    return None


def check_name(index: int, field: str, value: object, hint: str | None) -> list[Problem]:
    """Return the problem that a hint describes, with the value shortened.

    >>> check_name(0, "queue", "", name_hint(""))[0].message
    "'' is not a legal name"
    """
    if hint is None:
        return []
    shown = repr(value)
    if len(shown) > 80:  # noqa: PLR2004 (a screen's width, no rule)
        shown = shown[:77] + "..."
    return [Problem(index, field, f"{shown} is not a legal name", hint, "name")]


def invalid_name(field: str, value: object, hint: str) -> InvalidJob:
    """Return the error for an illegal name outside an enqueue.

    >>> print(invalid_name("queue", "Bulk", "use a-z"))
    queue 'Bulk' is not a legal name; use a-z
    """
    (problem,) = check_name(0, field, value, hint)
    return InvalidJob([problem], f"{field} {problem.message}; {hint}")
