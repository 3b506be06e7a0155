"""Give failures with one cause the same fingerprint (S75). Knows no store."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from fairlane.model.failure import MESSAGE_CHARS, Failure

DIGITS: Final = 16
"""How many hexadecimal digits a fingerprint has."""

_FOLDED_CHARS: Final = 300
"""How much of a folded message counts: what follows is detail."""

_FOLDS: Final = (
    # A quote opens before a word and closes after one, so that the apostrophe of "can't" does neither. One
    # that is not closed, because the message was cut, lasts to its end.
    (
        re.compile(
            r"(?<!\w)[bB]?'(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)"
            r"|\"[^\"\n]*\"|`[^`\n]*`"
            r"|(?<!\w)['\"`][^'\"`\n]{100,}\Z"
        ),
        "<text>",
    ),
    (re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+"), "<mail>"),
    # Any word with a digit: whether an id, an amount with its unit, or an address. A number must not become
    # another thing when it gets longer, and the digits of an id are sometimes all decimal.
    (re.compile(r"(?<![\w.-])[\w.-]*\d[\w.-]*"), "<value>"),
    (re.compile(r"(<value>|<text>|<mail>)(?:[:,]+ ?\1)+"), r"\1"),
    (re.compile(r"\s+"), " "),
)
_FRAME: Final = re.compile(r'^[ \t|]*File "([^"\n]+)", line \d+, in (\S+)', re.MULTILINE)
_SEPARATOR: Final = re.compile(r"[/\\]")
_FOREIGN: Final = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*|src[/\\]fairlane)[/\\]|^<"
)


def folded(message: str) -> str:
    """Return a message without numbers, ids and quoted values.

    >>> folded("user 4711 can't use mail 'ann@example.org' (7f3a9c21 took 30.5 s)")
    "user <value> can't use mail <text> (<value> took <value> s)"
    """
    text = message[:MESSAGE_CHARS]
    for pattern, fold in _FOLDS:
        text = pattern.sub(fold, text)
    return text.strip()[:_FOLDED_CHARS]


def innermost_frame(traceback: str | None) -> str:
    """Return the file and function of the application's innermost frame, without its line: that moves.

    >>> ours = 'File "/srv/mail.py", line 3, in send'
    >>> innermost_frame(ours + chr(10) + 'File "/usr/lib/python3.11/ssl.py", line 9, in read')
    'mail.py:send'
    """
    frames = [(path, name) for path, name in _FRAME.findall(traceback or "") if not _FOREIGN.search(path)]
    if not frames:
        return ""
    path, name = frames[-1]
    return f"{_SEPARATOR.split(path)[-1]}:{name}"


def fingerprint(task: str, failure: Failure) -> str:
    """Return the fingerprint of a task's failure: task, class, type, folded message, innermost frame.

    >>> from fairlane.model.failure import ErrorClass
    >>> one, other = (Failure(ErrorClass.RETRYABLE, "KeyError", f"no user {n}") for n in (1, 22))
    >>> fingerprint("send", one) == fingerprint("send", other)
    True
    >>> fingerprint("send", one) == fingerprint("sort", one)
    False
    """
    frame = innermost_frame(failure.traceback)
    parts = (task, failure.error_class.value, failure.error_type, folded(failure.message), frame)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:DIGITS]


def marked(task: str, failure: Failure) -> Failure:
    """Return a task's failure with its fingerprint."""
    return msgspec.structs.replace(failure, fingerprint=fingerprint(task, failure))
