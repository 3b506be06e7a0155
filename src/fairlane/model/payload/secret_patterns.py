"""Find secrets in text by pattern (S6). Knows no payload.

Every pattern takes linear time: quantifiers are possessive, and what precedes a match fixes where it starts.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fairlane.model.payload.secret_names import FieldContent, FieldNames

MARKER: Final = "[redacted]"
"""Replaces a secret, everywhere."""


class SecretSpan(NamedTuple):
    """The position of a secret in a text, and what it looks like."""

    start: int
    end: int
    why: str


_PROVIDER_KEYS: Final = (
    r"A[KS]IA[0-9A-Z]{16}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w-]{20,}+",
    r"gh[opsur]_[A-Za-z0-9]{30,}+",
    r"github_pat_\w{22,}+",
    r"glpat-[\w-]{20,}+",
    r"xox[abeprs]-[\w-]{10,}+",
    r"xapp-[\w-]{20,}+",
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}+",
    r"whsec_[A-Za-z0-9+/=]{20,}+",
    r"sk-[\w-]{20,}+",
    r"SG\.[\w-]{16,64}\.[\w-]{16,}+",
    r"SK[0-9a-f]{32}",
    r"key-[0-9a-f]{32}",
    r"dop_v1_[0-9a-f]{64}",
    r"hv[bs]\.[\w-]{20,}+",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"hf_[A-Za-z0-9]{30,}+",
    r"sq0(?:atp|csp)-[\w-]{22,}+",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+",
    r"\d{8,10}:AA[\w-]{33}",
)

_PEM_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_DIGITS = (
    r"\d{13,19}|\d{4}(?P<gap>[ -])\d{4}(?P=gap)\d{4}(?P=gap)\d{1,7}|\d{4}(?P<gap15>[ -])\d{6}(?P=gap15)\d{5}"
)

_AT_A_START = (
    r"(?P<jwt>(?<![_-])eyJ[\w-]{5,}+\.eyJ[\w-]{5,}+\.[\w-]*+)",
    r"(?P<bearer>(?i:bearer)[ \t]{1,8}(?P<bearer_secret>[\w.~+/=-]{12,}+))",
    r"(?P<basic>(?i:basic)[ \t]{1,8}(?P<basic_secret>[A-Za-z0-9+/=]{8,}+)(?!\.\w|[_-]))",
    rf"(?P<card>(?<![_.-])(?:{_DIGITS})(?!\w|[.-]\w))",
    rf"(?P<key>{'|'.join(_PROVIDER_KEYS)})",
)

_SECRET: Final = re.compile(
    # One test of what stands before, shared, makes most of any text pass quickly.
    rf"(?<![A-Za-z0-9])(?:{'|'.join(_AT_A_START)})"
    r"|(?P<url>://[^\s/:@]{0,128}:(?P<url_secret>[^\s/]{1,256})@)"
    # To its end, or to the end of a text that was cut.
    rf"|(?P<pem>-----BEGIN {_PEM_LABEL}(?s:.*?)(?:-----END {_PEM_LABEL}|\Z))",
    re.ASCII,
)


def _is_token(text: str) -> bool:
    """Tell a token from a long word: "bearer certificates" are none."""
    return bool(re.search(r"\d", text)) or (text[1:] != text[1:].lower() and text != text.upper())


def _is_basic(text: str) -> bool:
    try:
        return b":" in b64decode(text, validate=True)
    except BadBase64:
        return False


_CARD_STARTS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|30[0-5]|3[689]|35|6011|64[4-9]|65|62")


def _is_card(text: str) -> bool:
    """Check the first digits and the check digit (Luhn): most long numbers are somebody's ids.

    >>> _is_card("4111 1111 1111 1111"), _is_card("4111 1111 1111 1112")
    (True, False)
    """
    digits = text.replace(" ", "").replace("-", "")
    if not _CARD_STARTS.match(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


class _Pattern(NamedTuple):
    why: str
    part: str
    holds: Callable[[str], bool]


def _is_anything(_text: str) -> bool:
    return True


def _is_unmarked(text: str) -> bool:
    return text != MARKER


_PATTERNS: Final[Mapping[str, _Pattern]] = {
    "pem": _Pattern("private key", "pem", _is_anything),
    "jwt": _Pattern("signed token", "jwt", _is_anything),
    "bearer": _Pattern("bearer header", "bearer_secret", _is_token),
    "basic": _Pattern("basic header", "basic_secret", _is_basic),
    "url": _Pattern("password in a URL", "url_secret", _is_unmarked),
    "key": _Pattern("key of a known provider", "key", _is_anything),
    "card": _Pattern("card number", "card", _is_card),
}


def _by_pattern(text: str) -> Iterator[SecretSpan]:
    at = 0
    while match := _SECRET.search(text, at):
        pattern = _PATTERNS[str(match.lastgroup)]
        if pattern.holds(match[pattern.part]):
            yield SecretSpan(*match.span(pattern.part), pattern.why)
            at = match.end()
        else:
            at = match.start() + 1  # a secret may begin inside a false match


# --- name = value inside text ------------------------------------------------------------------------

_NAMED: Final = re.compile(
    r"""
    (?<![\w.-])
    (?: (?P<flag> --[\w-]{1,128}+ ) [ \t]{1,4} (?=[^\s-])       # --password x
      | (?P<name> [\w.-]{1,128}+ )
        (?: [\\"'`\]]{0,4} [ \t]{0,4} (?: => | [:=]{1,2} ) [ \t]{0,8}  # password=x, 'password': x
          | > (?=[^\s<]) )                                      # <password>x
    )
    """,
    re.VERBOSE,
)
_QUOTED: Final = re.compile(
    r"""
    [bBfFrRuU]{0,2}
    (?: " (?P<double> (?: [^"\\] | \\. )*+ ) (?: " | \\?\Z )
      | ' (?P<single> (?: [^'\\] | \\. )*+ ) (?: ' | \\?\Z ) )
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED_QUOTE: Final = re.compile(r"""\\{1,8}["']""")
_LINE: Final = re.compile(r"[^\r\n]++")
_BARE: Final = re.compile(r"[^\s,;&<]*[^\s,;&<)\]}.]")

_WHOLE_LINE: Final = frozenset({"authorization", "cookie"})
_PLAIN_IN_TEXT: Final = frozenset({"key"})
"""Names of fields that say nothing in running text, where a key is mostly one of a cache or a table."""

_NO_SECRET: Final = re.compile(
    r"(?:none|null|true|false|required|missing|invalid|expired|empty|undefined|\*+)[.!'\"]*", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"[\d.]+")


def _value_at(text: str, at: int, *, line: bool) -> tuple[int, int, bool]:
    """Return start and end of the value here, and whether names inside belong to it."""
    if quoted := _QUOTED.match(text, at):
        return *quoted.span(str(quoted.lastgroup)), True
    if quote := _ESCAPED_QUOTE.match(text, at):
        end = text.find(quote[0], quote.end())
        return quote.end(), len(text) if end < 0 else end, True
    if found := (_LINE if line else _BARE).match(text, at):
        # "token: token: x": the value of the first is the name of the second.
        return *found.span(), line or not re.fullmatch(r"[^:=]*+[:=]", found[0])
    return at, at, True


def _by_name(text: str, names: FieldNames) -> Iterator[SecretSpan]:
    at = 0
    while match := _NAMED.search(text, at):
        at = match.end()
        hit = names.hit(match["name"] or match["flag"])
        if hit is None or hit.word in _PLAIN_IN_TEXT:
            continue
        start, end, whole = _value_at(text, at, line=hit.word in _WHOLE_LINE)
        value = text[start:end]
        at = max(at, end) if whole else at
        if not value or value in {MARKER, MARKER[:-1]} or _NO_SECRET.fullmatch(value):
            continue
        if hit.holds is FieldContent.ANYTHING or not _NUMBER.fullmatch(value):
            yield SecretSpan(start, end, f"'{hit.word}' in text")


# --- the two together --------------------------------------------------------------------------------

_BUILT_IN: Final = FieldNames()
_MAX_PASSES: Final = 4
_SHORTEST: Final = 13
"""The shortest secret that a pattern finds without a separator: a card number."""
_ANY_SEPARATOR: Final = re.compile(r"[:=>]|--")


def secret_kind(text: str) -> str | None:
    """Return what kind of secret a text contains; None if there is none.

    >>> secret_kind("postgres://app:hunter2@db/app"), secret_kind("https://db:5432/app")
    ('password in a URL', None)
    """
    separated = _ANY_SEPARATOR.search(text)
    if not separated and len(text) < _SHORTEST:
        return None
    first = next(_by_pattern(text), None)
    if first is None and separated:
        first = next(_by_name(text, _BUILT_IN), None)
    return None if first is None else first.why


def redact_text(text: str, *, names: Iterable[str] = ()) -> str:
    """Replace every secret in a text by a marker: for errors, logs and tracebacks.

    >>> redact_text("login failed: user=ada password=hunter2, url=redis://:s3cret@cache")
    'login failed: user=ada password=[redacted], url=redis://:[redacted]@cache'
    """
    own = FieldNames(names)
    # A replaced secret may have hidden another: search again, a bounded number of times. A text that is not
    # clean by then is hostile and is not shown at all.
    for _ in range(_MAX_PASSES):
        shown = _redacted_once(text, own)
        if shown == text:
            return text
        text = shown
    return MARKER


def _redacted_once(text: str, names: FieldNames) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, _why in sorted((*_by_pattern(text), *_by_name(text, names))):
        if end <= done:
            continue
        if start >= done:
            pieces += (text[done:start], MARKER)
        done = end
    return "".join((*pieces, text[done:]))
