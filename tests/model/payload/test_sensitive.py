"""Secrets are found by name and by value, and what is shown never contains one (S6, M16)."""

from __future__ import annotations

import time
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane.model.errors import SensitivePayload, invalid_job
from fairlane.model.payload.encoding import PayloadRules, encode_arguments, encode_numbers
from fairlane.model.payload.sensitive import (
    LARGE_TEXT,
    MARKER,
    MAX_FINDINGS,
    SensitiveValue,
    are_plain_numbers,
    check_sensitive,
    find_sensitive,
    redact,
    redact_text,
)
from tests.model.payload.payload_values import arguments
from tests.model.payload.sensitive_tables import (
    JWT,
    MIXED,
    PEM,
    PLAIN_NAMES,
    PLAIN_TEXTS,
    SECRET_NAMES,
    SECRET_TEXTS,
)


def test_the_tables_are_as_long_as_promised() -> None:
    """At least 60 of each, none twice, none in both."""
    for secret, plain in ((SECRET_NAMES, PLAIN_NAMES), (list(SECRET_TEXTS), PLAIN_TEXTS)):
        assert min(len(secret), len(plain)) >= 60
        assert len({*secret, *plain}) == len(secret) + len(plain)


# --- finding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_field_with_a_secret_name_is_found(name: Any) -> None:
    """002-TR-2: any case, however its words are joined, at any depth."""
    (found,) = find_sensitive({"order": [{name: "xy"}]})
    assert found.path.startswith("arguments.order[0]")
    assert found.why.startswith("field name '")


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_field_with_a_plain_name_is_not_found(name: Any) -> None:
    """A warning that is usually wrong is soon not read."""
    assert find_sensitive({name: "xy"}) == []


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_text_that_looks_secret_is_found(text: Any) -> None:
    """002-TR-2: passwords, tokens, mail bodies, document content, whatever the field is called."""
    assert find_sensitive({"note": text}) == [SensitiveValue("arguments.note", SECRET_TEXTS[text])]


@pytest.mark.parametrize("text", PLAIN_TEXTS)
def test_text_that_looks_plain_is_not_found(text: Any) -> None:
    """A warning that is usually wrong is soon not read."""
    assert find_sensitive({"note": text}) == []
    assert redact_text(text) == text


def test_bytes_are_looked_at_like_text() -> None:
    """A key is often read from a file as bytes."""
    for text, why in SECRET_TEXTS.items():
        assert find_sensitive({"note": text.encode()}) == [SensitiveValue("arguments.note", why)]


class Grant(StrEnum):
    """Constants of the application's code."""

    TOKEN = "password=hunter2"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("password", 12345, True),
        ("cvv", 123, True),
        ("password", None, False),
        ("password", True, False),
        ("tokens", 1500, False),
        ("secret", 0.5, False),
        ("token", Decimal(1), True),
        ("credentials", {"user": "ada", "word": "x"}, True),
        ("tokens", ["a", "b"], True),
        ("email_body", {"blocks": []}, False),
        ("email_body", b"x", True),
        ("note", Grant.TOKEN, False),
        ("password", MARKER, False),
    ],
)
def test_the_kind_of_value_counts(name: Any, value: Any, found: Any) -> None:
    """A number called tokens is a count; None and a flag hide nothing; a constant is no secret."""
    assert bool(find_sensitive({name: value})) is found


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"number": 5, "ratio": 0.5, "is_new": True, "parent": None}, []),
        ({"number": 5, "cvv": 123}, ["arguments.cvv"]),
        ({"4111111111111111": 5}, ["arguments['[redacted]']"]),
        ({"x" * 65: 5}, []),
    ],
)
def test_numbers_are_found_by_their_names_alone(values: Any, found: Any) -> None:
    """Also where there is nothing but numbers."""
    assert [one.path for one in find_sensitive(values)] == found


@pytest.mark.parametrize(
    ("values", "is_plain"),
    [
        ({}, True),
        ({"number": 5, "ratio": 0.5, "is_new": True, "parent": None}, True),
        ({"least": -(2**63), "most": 2**63 - 1}, True),
        ({"number": 2**63}, False),
        ({"number": -(2**63) - 1}, False),
        ({"ratio": float("nan")}, False),
        ({"ratio": float("inf")}, False),
        ({"number": 5, "cvv": 123}, False),
        ({"4111111111111111": 5}, False),
        ({"$date": 5}, False),
        ({"x" * 65: 5}, False),
        ({1: 5}, False),
        ({"to": "ada"}, False),
        ({"numbers": [5]}, False),
        ({"grant": Grant.TOKEN}, False),
    ],
)
def test_numbers_under_names_that_give_nothing_away_are_told_apart(values: Any, is_plain: Any) -> None:
    """They are encoded without being looked through, so nothing else may pass for them."""
    assert are_plain_numbers(values) is is_plain


@given(arguments | st.dictionaries(st.text(max_size=5), st.integers() | st.floats() | st.none(), max_size=3))
def test_plain_numbers_hold_no_secret_and_need_no_turning(values: Any) -> None:
    """What skips both checks would have passed them, to the same bytes."""
    if are_plain_numbers(values):
        assert find_sensitive(values) == []
        assert encode_numbers(values, PayloadRules(), 7) == encode_arguments(values, beside=7)


def test_a_tasks_own_names_count_whatever_the_value_is() -> None:
    """`sensitive=` of a task: in any case, in longer names, at any depth, for every kind of value."""
    given_arguments = {
        "diagnosis": "flu",
        "rows": [{"patientDiagnosis": None, "birth-date": date(2000, 1, 1), "date": date(2026, 1, 1)}],
        "undiagnosed": True,
    }
    names = ["Diagnosis", "birth_date", "", "?"]
    assert find_sensitive(given_arguments, names=names) == [
        SensitiveValue("arguments.diagnosis", "field name 'Diagnosis'"),
        SensitiveValue("arguments.rows[0].patientDiagnosis", "field name 'Diagnosis'"),
        SensitiveValue("arguments.rows[0]['birth-date']", "field name 'birth_date'"),
    ]
    assert redact(given_arguments, names=names) == {
        "diagnosis": MARKER,
        "rows": [{"patientDiagnosis": MARKER, "birth-date": MARKER, "date": date(2026, 1, 1)}],
        "undiagnosed": True,
    }
    assert redact_text("diagnosis=flu, x=1", names=names) == f"diagnosis={MARKER}, x=1"


def test_every_container_is_looked_into() -> None:
    """And a key that is itself a secret is found without being shown."""
    key = "gh" + "p_" + MIXED
    long_key = "z" * 70 + " password=hunter2"
    found = find_sensitive(
        {"a": ({"password=hunter2"}, [frozenset({"token=hunter2"})]), "b": {key: 1, long_key: 2}}
    )
    assert found == [
        SensitiveValue("arguments.a[0][*]", "'password' in text"),
        SensitiveValue("arguments.a[1][0][*]", "'token' in text"),
        SensitiveValue(f"arguments.b['{MARKER}']", "its key: key of a known provider"),
        SensitiveValue(f"arguments.b['{MARKER}']", "its key: 'password' in text"),
    ]


def test_at_most_a_hundred_findings_are_listed() -> None:
    """A thousand rows with a password each are one mistake."""
    found = find_sensitive({"rows": [{"password": "x"}] * 1000})
    assert len(found) == MAX_FINDINGS == 100
    assert found == find_sensitive({"rows": [{"password": "x"}] * 100})


def test_what_has_no_end_is_said_to_be_too_much(monkeypatch: Any) -> None:
    """Finding runs before or after encoding; a value that contains itself must not hang it."""
    loop: list[object] = []
    loop += [loop, loop]
    (found,) = find_sensitive({"x": loop})
    assert found.why == "too deep or too much to look through"
    monkeypatch.setattr("fairlane.model.payload.sensitive._MAX_VALUES", 10)
    (found,) = find_sensitive({"x": ["a"] * 20})
    assert found == SensitiveValue("arguments.x[8]", "too deep or too much to look through")
    assert redact(["a"] * 20) == ["a"] * 9 + [MARKER] * 11


# --- policy ------------------------------------------------------------------------------------------


def test_allow_looks_at_nothing() -> None:
    """S6: what is stored is the application's business."""
    assert check_sensitive({"password": "hunter2"}, "allow") == ([], [])


def test_warn_gives_findings_and_refuses_nothing() -> None:
    """S6."""
    problems, findings = check_sensitive({"password": "hunter2", "shade": "x"}, "warn", ["shade"])
    assert problems == []
    assert [found.path for found in findings] == ["arguments.password", "arguments.shade"]


def test_reject_gives_problems_that_never_show_the_value() -> None:
    """S6: as the narrowest error, with the path and advice."""
    problems, findings = check_sensitive(
        {"user": {"password": "hunter2"}, "shade": "hunter2"}, "reject", ["shade"]
    )
    assert findings == []
    assert [(problem.index, problem.field, problem.code) for problem in problems] == [
        (0, "arguments.user.password", "sensitive"),
        (0, "arguments.shade", "sensitive"),
    ]
    error = invalid_job(problems)
    assert isinstance(error, SensitivePayload)
    assert "hunter2" not in str(error)


# --- redacting ---------------------------------------------------------------------------------------


def everything() -> dict[str, Any]:
    """Return a payload with every secret of the tables, and plain things between them."""
    return {
        "by_name": {name: f"hunter2 {name}" for name in SECRET_NAMES},
        "by_value": list(SECRET_TEXTS),
        "as_bytes": tuple(text.encode() for text in SECRET_TEXTS),
        "as_members": set(SECRET_TEXTS),
        "as_keys": dict.fromkeys(SECRET_TEXTS, 0),
        "plain": dict(zip(PLAIN_NAMES, PLAIN_TEXTS, strict=False)),
    }


def test_no_secret_of_the_tables_remains() -> None:
    """Neither as value nor as key, in no container; the plain rest stays, and so does the shape."""
    shown = redact(everything())
    assert not find_sensitive(shown)
    for secret in [*SECRET_TEXTS, "hunter2", "hunter two", "MIIEvQIBADANBg"]:
        assert secret not in repr(shown)
        assert repr(secret) not in repr(shown)
    assert shown["plain"] == everything()["plain"]
    assert [len(shown[part]) for part in ("by_name", "by_value", "as_bytes", "as_keys")] == [
        len(SECRET_NAMES),
        len(SECRET_TEXTS),
        len(SECRET_TEXTS),
        len(SECRET_TEXTS),
    ]
    assert shown["as_members"] == {MARKER}
    assert type(shown["as_bytes"]) is tuple


def test_redacting_leaves_the_original_as_it_is() -> None:
    """S6: what is stored is never altered."""
    original = everything()
    before = deepcopy(original)
    redact(original)
    assert original == before


def test_values_without_secret_are_shown_as_they_are() -> None:
    """Same value, same type."""
    plain = {
        "n": None, "b": True, "i": 1, "f": 0.5, "s": "x", "by": b"x", "d": date(2026, 1, 1),
        "at": datetime(2026, 1, 1, tzinfo=UTC), "for": timedelta(1), "price": Decimal("1.20"),
        "id": UUID(int=1), "e": Grant.TOKEN, "l": [1], "t": (1,), "m": {1}, "z": frozenset({1}),
    }  # fmt: skip
    assert repr(redact(plain)) == repr(plain)


def test_what_no_payload_can_hold_is_not_shown() -> None:
    """An object's repr may say anything; a key that is no text stays."""
    assert redact({"x": object(), 1: [1j]}) == {"x": MARKER, 1: [MARKER]}


def test_redacting_has_a_bounded_depth() -> None:
    """Deeper than any payload, there is only the marker."""
    deep: Any = "bottom"
    for _ in range(200):
        deep = [deep]
    assert "bottom" not in repr(redact(deep))
    assert MARKER in repr(redact(deep))


@given(st.recursive(st.sampled_from([*SECRET_TEXTS, *PLAIN_TEXTS]), lambda inner: st.lists(inner, max_size=3)
       | st.dictionaries(st.sampled_from([*SECRET_NAMES, *PLAIN_NAMES, *SECRET_TEXTS]), inner, max_size=3),
       max_leaves=6))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_redacting_again_changes_nothing(value: Any) -> None:
    """And nothing sensitive is found in what was redacted."""
    shown = redact(value)
    assert redact(shown) == shown
    assert find_sensitive({"x": shown}) == []


@given(arguments)
@settings(max_examples=25, deadline=None)
def test_any_payload_can_be_redacted(given_arguments: Any) -> None:
    """Same keys, and nothing raised, whatever the values are."""
    assert len(redact(given_arguments)) == len(given_arguments)


# --- redacting text ----------------------------------------------------------------------------------

TEXTS = [
    ("connect(password='hunter2', user='ada')", f"connect(password='{MARKER}', user='ada')"),
    ('{"token": "a\\"b", "n": 1}', f'{{"token": "{MARKER}", "n": 1}}'),
    ("Config(api_key=b'hunter2')", f"Config(api_key=b'{MARKER}')"),
    ("url=postgres://app:hunter2@db/app refused", f"url=postgres://app:{MARKER}@db/app refused"),
    ("Authorization: Basic x y\nHost: a", f"Authorization: {MARKER}\nHost: a"),
    ("{'Cookie': 'a=b; c=d', 'n': 1}", f"{{'Cookie': '{MARKER}', 'n': 1}}"),
    ("KeyError: 'password'", "KeyError: 'password'"),
    ("password='hunter2 and no end", f"password='{MARKER}"),
    ("password='hunter2\\", f"password='{MARKER}\\"),
    (r"{\"password\": \"hunter two\", \"n\": 1}", rf"{{\"password\": \"{MARKER}\", \"n\": 1}}"),
    (r"{\"password\": \"hunter two", rf"{{\"password\": \"{MARKER}"),
    ("password=)", "password=)"),
    ("password=", "password="),
    ("(password=hunter2).", f"(password={MARKER})."),
    ("token: token: hunter2", f"token: {MARKER} {MARKER}"),
    ("error: password: hunter2", f"error: password: {MARKER}"),
    ("cards 4111111111111111 and 4111111111111112", f"cards {MARKER} and 4111111111111112"),
    (f"Basic {JWT}", f"Basic {MARKER}"),
    (f"password={JWT}, x", f"password={MARKER}, x"),
    (f"a {PEM.format('')} b", f"a {MARKER} b"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE and cut", MARKER),
    (f"token=x password={MARKER}", f"token={MARKER} password={MARKER}"),
    ("/reset?token=hunter2&next=/", f"/reset?token={MARKER}&next=/"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_only_the_secret_part_of_a_text_is_replaced(text: Any, shown: Any) -> None:
    """So that an error still says what went wrong."""
    assert redact_text(text) == shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize("secret", [text for text in SECRET_TEXTS if len(text) <= LARGE_TEXT])
def test_a_traceback_around_a_secret_loses_it(secret: Any) -> None:
    """Errors, logs and tracebacks quote what they failed on, plainly or as a repr."""
    for quoted in (secret, repr(secret), f'File "x.py", line 3\n    call({secret!r})\nValueError: {secret}'):
        shown = redact_text(quoted)
        assert secret not in shown
        assert "hunter2" not in shown
        assert MARKER in shown
        assert redact_text(shown) == shown


fragments = st.sampled_from([
    *[text for text in SECRET_TEXTS if len(text) < 100], "password", "token", "cookie", "=", ": ", "'", '"',
    "\\", " ", "\n", ",", "--", ")", "]", "[", "x", "1", ".", "@", "://", "<", ">", MARKER, "none", "&",
])  # fmt: skip


@given(st.lists(fragments, max_size=8).map("".join))
@settings(max_examples=200, deadline=None)
@example("token: token: token:")
@example(f"password={MARKER}x")
@example("password='password=\"x'")
@example("AKIAABCDEFGHIJKLMNOP" * 5)
def test_redacting_text_again_changes_nothing(text: Any) -> None:
    """What was redacted has no secret left, and the marker is none."""
    shown = redact_text(text)
    assert redact_text(shown) == shown


def test_text_is_looked_at_again_only_so_often(monkeypatch: Any) -> None:
    """What stood against a secret may have hidden another; hostile text must not make that endless."""
    hidden = f"{PEM.format('')}{JWT}"
    assert redact_text(hidden) == MARKER * 2
    monkeypatch.setattr("fairlane.model.payload.secret_patterns._MAX_PASSES", 2)
    assert redact_text(f"a text with {hidden}") == MARKER


# --- the cost ----------------------------------------------------------------------------------------

ADVERSARIES = [
    "a", "-", "eyJ", "eyJaaaaa.", "password=", "password='", 'password=\\"', "token:", "token: ", "cookie: ",
    "://a:", "1", "1 ", "4111 ", "Bearer ", "basic aaaaaaaa ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ",
    "A", "Aa", "SG.aaaaaaaaaaaaaaaa", "password=)", "--a ", "--password ", "sk-", "\\", '"', "12345678:AA",
    "<password>x", "x=",
]  # fmt: skip


@pytest.mark.parametrize("piece", ADVERSARIES)
def test_the_work_grows_with_the_text_and_no_faster(piece: Any) -> None:
    """A megabyte made to be hard costs about as much as any other: no catastrophic backtracking."""
    spent = {}
    for size in (1_000, 16_000):
        text = (piece * size)[:size]
        spent[size] = min(_seconds(text) for _ in range(2))
    # 16 times the text. Quadratic work would be 256 times as long; CPU time does not see the neighbours.
    assert spent[16_000] < 100 * max(spent[1_000], 0.0005)


def _seconds(text: str) -> float:
    start = time.process_time()
    redact_text(text)
    return time.process_time() - start


def test_a_megabyte_of_any_text_is_redacted() -> None:
    """The largest payload's worth of text, of the hardest kinds."""
    for piece, shown in (("token:", f"token:{MARKER}"), ("eyJ", "eyJ" * 350_000)):
        assert redact_text(piece * 350_000)[:1_050_000] == shown
    assert len(find_sensitive({"token" * 200_000: 1, "Aa" * 500_000: 1})) == 2
