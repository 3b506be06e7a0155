"""Decide by a field's name whether it holds a secret (S6). Looks at no value, only at its type.

Names are split into words: `apiKey`, `API_KEY` and `x-api-key` are the same, while `monkey`, `secretary` and
`primary_key` do not match. Neither do names that only count, date or describe a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec


class FieldContent(Enum):
    """What a field of this name holds, and so which types of value can be secret."""

    ANYTHING = "anything"
    """A password may be all digits."""
    TEXT = "text"
    """A number called `tokens` is a count."""
    CONTENT = "content"
    """A mail body or a document: text or bytes."""


class NameHit(msgspec.Struct, frozen=True):
    """The words of a name that matched."""

    word: str
    holds: FieldContent


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")

_ANYTHING = """
    password; passwd; pwd; passphrase; passcode; otp; totp; cvv; cvc; ssn; iban; card number; credit card;
    debit card; card pin; social security; bank account; account number; passport number; security code;
    security answer; verification code; recovery code; backup code; one time code
"""
_TEXT = """
    secret; token; credential; authorization; cookie; jwt; apikey; api key; private key; secret key;
    access key; account key; auth key; client key; consumer key; deploy key; encryption key; license key;
    master key; service key; session key; shared key; signing key; ssh key; webhook key; session id;
    sessionid; jsessionid; phpsessid; auth header; basic auth; auth code; secret id
"""
_CONTENT = """
    mail body; email body; message body; body html; body text; html body; text body; mail content;
    email content; mail html; email html; document content; document text; document body; file content;
    attachment content; attachment data
"""
_WHOLE = {"auth": FieldContent.TEXT, "pass": FieldContent.TEXT, "key": FieldContent.TEXT}
"""Too short to mean anything inside a longer name: a `sort_key` is none, a `key` may be one to anything."""


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _listed(words: str) -> frozenset[str]:
    return frozenset(map(_singular, words.split()))


_GLUED = _listed("""
    password passwd passphrase apikey privatekey secretkey accesskey accesstoken authtoken refreshtoken
    clientsecret sessionid cardnumber creditcard
""")
"""Found within one word, for those who write names without any separation."""

_ENDINGS = ("token", "secret", "pwd")

_BEFORE = _listed("""
    allow can count enable forgot has have hide is max maximum min minimum n need no num number require
    required should show skip total
""")
_AFTER = _listed("""
    accepted address age algorithm alias arn at attempt audience banner brand bucket budget change changed
    column consent cost count date day dir disabled domain enabled endpoint expiration expire expired expiry
    field file filename format holder hour id index issuer kind label last len length level limit link
    location manager masked max min minute mode name notice offset path per policy position preference
    present price provider quota rate ratio ref reference remaining required reset retry rule scope second
    set setting size standard state status store strength symbol time total ttl type uri url usage used
    valid verified version window
""")
"""As first or last word these make a name say something about a secret: `token_count`, `has_password`."""


def _phrases(text: str, holds: FieldContent) -> dict[tuple[str, ...], NameHit]:
    return {tuple(phrase.split()): NameHit(phrase.strip(), holds) for phrase in text.strip().split(";")}


_PHRASES: Final = (
    _phrases(_CONTENT, FieldContent.CONTENT)
    | _phrases(_TEXT, FieldContent.TEXT)
    | _phrases(_ANYTHING, FieldContent.ANYTHING)
)
_LONGEST: Final = max(map(len, _PHRASES))

LONGEST_CACHED_NAME: Final = 64
"""Names repeat with every job and are cached; a longer one is probably data."""


def words_of(name: str) -> tuple[str, ...]:
    """Split a name into lower-case singular words.

    >>> words_of("X-API-Keys"), words_of("userPassword2"), words_of("address")
    (('x', 'api', 'key'), ('user', 'password', '2'), ('address',))
    """
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def name_hit(name: str) -> NameHit | None:
    """Return what makes a name suspicious; None for most names.

    >>> name_hit("dbPassword").word, name_hit("token_count"), name_hit("sort_key")
    ('password', None, None)
    """
    return _cached_match(name) if len(name) <= LONGEST_CACHED_NAME else _match(name)


@lru_cache(maxsize=4096)
def _cached_match(name: str) -> NameHit | None:
    return _match(name)


def _match(name: str) -> NameHit | None:
    words = tuple(word for word in words_of(name) if not word.isdigit())
    if len(words) == 1 and words[0] in _WHOLE:
        return NameHit(words[0], _WHOLE[words[0]])
    for start in range(len(words)):
        for size in range(_LONGEST, 0, -1):
            hit = _PHRASES.get(words[start : start + size]) or (
                _match_inside(words[start]) if size == 1 else None
            )
            if hit is not None:
                before = start > 0 and words[0] in _BEFORE
                after = start + size < len(words) and words[-1] in _AFTER
                if not before and not after:
                    return hit
    return None


def _match_inside(word: str) -> NameHit | None:
    for part in _GLUED:
        if part in word:
            return NameHit(part, FieldContent.ANYTHING)
    ending = next((end for end in _ENDINGS if word.endswith(end)), None)
    return None if ending is None else NameHit(ending, FieldContent.TEXT)


class FieldNames:
    """The built-in names and a task's own. Those match inside longer names, too, for any value."""

    __slots__ = ("_own",)

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = {words_of(name): NameHit(name, FieldContent.ANYTHING) for name in own if words_of(name)}

    def hit(self, name: str) -> NameHit | None:
        """Return what makes a name suspicious.

        >>> FieldNames(["diagnosis"]).hit("patientDiagnosis").word
        'diagnosis'
        """
        return self._own_hit(name) or name_hit(name)

    def why(self, name: str, value: object) -> str | None:
        """Return why the value of this field is sensitive; None if its name does not say so.

        >>> FieldNames().why("access_token", "x"), FieldNames().why("tokens", 1500)
        ("field name 'token'", None)
        """
        hit = self._own_hit(name) if self._own else None
        if hit is None:
            hit = name_hit(name)
            if hit is None or not _can_be(value, hit.holds):
                return None
        return f"field name '{hit.word}'"

    def _own_hit(self, name: str) -> NameHit | None:
        words = words_of(name)
        return next(
            (
                hit
                for own, hit in self._own.items()
                if any(words[at : at + len(own)] == own for at in range(len(words)))
            ),
            None,
        )


def _can_be(value: object, holds: FieldContent) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if holds is FieldContent.CONTENT:
        return isinstance(value, str | bytes)
    return holds is FieldContent.ANYTHING or not isinstance(value, int | float)
