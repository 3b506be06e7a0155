"""Names are refused, never repaired: nothing is trimmed, folded or normalised (S3, S4)."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.names import (
    LABEL_BYTES,
    TEXT_CHARS,
    check_name,
    label_hint,
    name_hint,
    task_hint,
    tenant_hint,
    text_hint,
)

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits

# What S3 says, written out a second time.
FIRST: dict[Callable[[object], str | None], str] = {
    name_hint: LOWER + DIGITS,
    task_hint: LOWER + UPPER + DIGITS + "_",
    tenant_hint: LOWER + UPPER + DIGITS + "!#$%&()+,.:;<=>@[]^_|~",
}
LATER: dict[Callable[[object], str | None], str] = {
    name_hint: FIRST[name_hint] + "_.-",
    task_hint: FIRST[task_hint] + ".:-",
    tenant_hint: FIRST[tenant_hint] + "-",
}
LONGEST = {name_hint: 63, task_hint: 200, tenant_hint: 128, label_hint: 255}

ODD = [
    None,
    True,
    0,
    1.5,
    b"bulk",
    ["bulk"],
    ("bulk",),
    object,
    "",
    " ",
    "\t",
    "\n",
    "\x00",
    "\x7f",
    "bulk\n",
    "\nbulk",
    "bulk\x00",
    "bulk\r",
    "bulk\x85",
    "\ud800",
    "bulk\udfff",
]
"""No kind of name has these."""

NOT_A_NAME = [
    *ODD,
    "Bulk",
    "bulK",
    "BULK",
    " bulk",
    "bulk ",
    "bu lk",
    "bulk\u00a0",
    "bulk\u200b",
    "\ufeffbulk",
    "bülk",
    "bu\u0308lk",
    "ｂｕｌｋ",
    "bul\u212a",
    "bulk١",
    "bulk²",
    "база",
    "🚚",
    "-bulk",
    "_bulk",
    ".bulk",
    "bulk:high",
    "bulk/high",
    "bulk\\high",
    "bulk*",
    "*",
    "bulk?",
    "{bulk}",
    "'bulk'",
    '"bulk"',
    "`bulk`",
    "bulk,high",
    "bulk;",
    "bulk@eu",
    "bulk+",
    "bulk~",
    "x" * 64,
    "x" * 10_000,
]
NAMES = [
    "a",
    "0",
    "bulk",
    "7up",
    "a_b",
    "a.b",
    "a-b",
    "a-",
    "a_",
    "a.",
    "a..b",
    "00",
    "x" * 63,
    "e-mail.v2_eu",
]

NOT_A_TASK = [
    *ODD,
    " send",
    "send ",
    "se nd",
    "send\u00a0",
    "-send",
    ".send",
    ":send",
    "send/fax",
    "send\\fax",
    "send*",
    "send?",
    "send()",
    "{send}",
    "'send'",
    '"send"',
    "`send`",
    "send,fax",
    "send@eu",
    "send<locals>",
    "sénd",
    "отправить",
    "ｓｅｎｄ",
    "📠",
    "send+1",
    "send~",
    "x" * 201,
    "x" * 100_000,
]
TASKS = [
    "a",
    "A",
    "0",
    "_",
    "__main__.run",
    "send_fax",
    "sendFax",
    "SEND",
    "mail.send",
    "mail:send",
    "mail-send",
    "app.jobs.mail:send-v2",
    "7zip",
    "a.",
    "a:",
    "a-",
    "x" * 200,
]

NOT_A_TENANT = [
    *ODD,
    " acme",
    "acme ",
    "ac me",
    "acme\u00a0",
    "acme\u200b",
    "-acme",
    "-",
    "{acme}",
    "acme{",
    "acme}",
    "'acme'",
    '"acme"',
    "ac`me",
    "ac*me",
    "*",
    "acme?",
    "ac\\me",
    "ac/me",
    "../acme",
    "acmé",
    "ac\u0301me",
    "ａｃｍｅ",
    "акме",
    "🏢",
    "acme\u2028",
    "x" * 129,
    "x" * 100_000,
]
TENANTS = [
    "a",
    "A",
    "0",
    "system",
    "acme",
    "Acme",
    "ACME",
    "acme-eu",
    "acme_eu",
    "acme.eu",
    "acme:42@eu",
    "42",
    "_acme",
    ".acme",
    "a--b",
    "acme-",
    "(acme)",
    "[acme]",
    "<acme>",
    "a=b&c=d",
    "100%",
    "#1",
    "$acme!",
    "a|b~c^d",
    "a;b,c",
    "6f1c2a9e-52b0-7c9b-8f0b-1f6d2b6f3c11",
    "x" * 128,
]

NOT_A_LABEL = [
    *ODD[:8],
    "",
    "\x00",
    "a\x00b",
    "\t",
    "a\tb",
    "\n",
    "a\n",
    "\r",
    "\x1b[31m",
    "\x1f",
    "\x7f",
    "a\x7f",
    "\x80",
    "\x85",
    "a\x9f",
    "\ud800",
    "a\udc00",
    "\udfff\ud800",
    "x" * 256,
    "é" * 128,
    "€" * 86,
    "🚚" * 64,
    "x" * 254 + "é",
    "x" * 100_000,
]
LABELS = [
    "a",
    " ",
    " a",
    "a ",
    "  ",
    "A",
    "0",
    "order 66",
    "fax-7",
    "key=value",
    "a/b\\c",
    "{curly}",
    "'single'",
    '"double"',
    "`tick`",
    "*",
    "?",
    "a:b",
    "é",
    "e\u0301",
    "база",
    "日本語",
    "🚚",
    "\u00a0",
    "\u200b",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "\U0010ffff",
    "-a",
    "<script>",
    "%00",
    "x" * 255,
    "é" * 127,
    "é" * 127 + "x",
    "€" * 85,
    "🚚" * 63 + "xyz",
]

TABLES = {
    name_hint: (NAMES, NOT_A_NAME),
    task_hint: (TASKS, NOT_A_TASK),
    tenant_hint: (TENANTS, NOT_A_TENANT),
    label_hint: (LABELS, NOT_A_LABEL),
}


def _rows(which: int) -> list[object]:
    return [
        pytest.param(kind, value, id=f"{kind.__name__}-{number}")
        for kind, tables in TABLES.items()
        for number, value in enumerate(tables[which])
    ]


@pytest.mark.parametrize(("kind", "value"), _rows(0))
def test_a_legal_value_needs_nothing(kind: Callable[[object], str | None], value: str) -> None:
    """Legal means legal as it is: it will be stored byte for byte."""
    assert kind(value) is None


@pytest.mark.parametrize(("kind", "value"), _rows(1))
def test_an_illegal_value_is_told_what_is_allowed(
    kind: Callable[[object], str | None], value: object
) -> None:
    """The same hint for every way of being wrong, with the longest length in it."""
    hint = kind(value)
    assert hint is not None
    assert hint.startswith(f"use 1 to {LONGEST[kind]} ")


@pytest.mark.parametrize("kind", TABLES)
def test_the_tables_are_long_enough_to_mean_something(kind: Callable[[object], str | None]) -> None:
    """At least sixty values for each kind."""
    legal, illegal = TABLES[kind]
    assert len(legal) + len(illegal) >= 60


@pytest.mark.parametrize("kind", FIRST)
def test_each_of_the_first_characters_of_unicode_is_judged_as_the_rule_says(
    kind: Callable[[object], str | None],
) -> None:
    """Every character up to U+02FF, first and later in a name."""
    for character in map(chr, range(0x300)):
        assert (kind(character) is None) == (character in FIRST[kind]), f"{character!r} as first"
        assert (kind("a" + character) is None) == (character in LATER[kind]), f"{character!r} later"


def test_each_of_the_first_characters_of_unicode_is_judged_in_a_label() -> None:
    """Only control characters are refused: C0, DEL and C1."""
    for number in range(0x300):
        is_control = number < 0x20 or 0x7F <= number <= 0x9F
        assert (label_hint(chr(number)) is None) != is_control, hex(number)


@pytest.mark.parametrize("kind", LONGEST)
def test_the_longest_length_is_legal_and_one_more_is_not(kind: Callable[[object], str | None]) -> None:
    """The bound is inclusive."""
    assert kind("x" * LONGEST[kind]) is None
    assert kind("x" * (LONGEST[kind] + 1)) is not None


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_a_label_is_legal_exactly_if_its_bytes_fit_and_nothing_in_it_controls(text: str) -> None:
    """The length counts bytes of UTF-8, not characters."""
    is_clean = not any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in text)
    fits = 1 <= len(text.encode()) <= LABEL_BYTES
    assert (label_hint(text) is None) == (is_clean and fits)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_no_text_breaks_a_check(text: str) -> None:
    """Every string has an answer, lone surrogates too."""
    for kind in TABLES:
        assert kind(text) is None or isinstance(kind(text), str)


def test_a_problem_shows_the_value_and_the_hint() -> None:
    """Index and field say where, the code says what kind."""
    (problem,) = check_name(3, "queue", "Bulk", name_hint("Bulk"))
    assert (problem.index, problem.field, problem.code) == (3, "queue", "name")
    assert problem.message == "'Bulk' is not a legal name"
    assert problem.hint == name_hint("Bulk")


def test_a_value_that_fits_on_a_line_is_shown_whole() -> None:
    """80 characters with its quotes are the most."""
    (problem,) = check_name(0, "queue", "X" * 78, "a hint")
    assert problem.message == f"'{'X' * 78}' is not a legal name"


def test_a_legal_name_makes_no_problem() -> None:
    """The list of problems stays empty."""
    assert check_name(0, "queue", "bulk", name_hint("bulk")) == []


@pytest.mark.parametrize("value", ["x" * 79, "x" * 100_000, "\ud800" * 500, ["x"] * 500])
def test_an_endless_value_is_shown_in_a_bounded_way(value: object) -> None:
    """A message stays one line that a log can hold, whatever was sent."""
    (problem,) = check_name(0, "queue", value, "a hint")
    assert len(problem.message) == 80 + len(" is not a legal name")
    assert problem.message.endswith("... is not a legal name")
    problem.message.encode()


@pytest.mark.parametrize("text", ["", "x" * TEXT_CHARS, "two\nlines\tand a tab", "ünï \U0001f600"])
def test_free_texts_may_be_long_and_have_lines(text: str) -> None:
    """Up to 2,000 characters of anything that can be shown."""
    assert text_hint(text) is None


@pytest.mark.parametrize(
    "text", ["x" * (TEXT_CHARS + 1), "\x00", "a\rb", "\x1b[31m", "\x7f", "\x85", "\ud800", 7, None]
)
def test_what_a_free_text_cannot_be_is_said(text: object) -> None:
    """Endless, not to be shown, not to be stored, or no text."""
    hint = text_hint(text)
    assert hint is not None
    assert "2,000" in hint
