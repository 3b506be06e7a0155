"""Failures with one cause have one fingerprint, and others have others (S75)."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from fairlane.model.failure import MESSAGE_CHARS, ErrorClass, Failure
from fairlane.model.fingerprint import DIGITS, fingerprint, folded, innermost_frame, marked

SAME: Final[dict[str, tuple[str, ...]]] = {
    "a number of any length": (
        "no user 1",
        "no user 22",
        "no user 99999",
        "no user 100000",
        "no user 2000000000",
    ),
    "a fraction": ("took 3 s", "took 30.5 s", "took -0.001 s"),
    "thousands": ("12 rows", "1,234 rows", "1,234,567 rows"),
    "a unit": ("took 5ms", "took 512ms", "took 123456ms"),
    "a hexadecimal id": ("request 7f3a9c21 failed", "request 12345678 failed", "request 1234567a failed"),
    "a UUID": (
        "job 01a3185c-5000-7137-b2a7-4de50e271365",
        "job ffffffff-ffff-4fff-8fff-ffffffffff0f",
        "job 11111111-1111-4111-8111-111111111111",
    ),
    "an address in memory": ("<Pool object at 0x7f8c389d0ad0>", "<Pool object at 0x1f>"),
    "a business id": ("order ORD-2024-0001", "order ORD-2031-9"),
    "a time": ("at 2026-11-18T20:30:15.123Z", "at 2031-01-01T00:00:00Z"),
    "a date and a time": ("since 2026-11-18 20:30:15", "since 1999-01-01 01:01:01"),
    "a network address": ("connect to 10.0.0.1:5432", "connect to 192.168.17.230:15432"),
    "a port": ("connect to localhost:5432", "connect to localhost:80"),
    "a worker": (
        "worker worker-web1.example.org-4711-68f1a2b3-0a1b2c stopped renewing its lease",
        "worker worker-db.internal-9-68f1a2ff-ffffff stopped renewing its lease",
    ),
    "a mail address": ("no mail for ann@example.org", "no mail for zoe.b+x@sub.example.co.uk"),
    "a quoted value": ("no column 'a'", "no column 'a longer name'", "no column ''"),
    "a value in double quotes": ('unknown key "a"', 'unknown key "it\'s"'),
    "a value in backquotes": ("table `a` is locked", "table `b c` is locked"),
    "bytes": ("cannot decode b'abc'", "cannot decode b'\\xff'"),
    "an apostrophe before a quoted value": ("can't open 'a.txt'", "can't open 'b.txt'"),
    "an apostrophe in a quoted value": ("no city 'L'Aquila'", "no city 'Rome'"),
    "a list of numbers": ("ids 1, 2, 3 are gone", "ids 4 are gone", "ids 5,6 are gone"),
    "a list of values": ("one of ['a', 'b'] expected", "one of ['c'] expected"),
    "a record": ('got {"id": 5, "name": "Zoë"}', 'got {"id": 77, "name": "Ann"}'),
    "white space": ("no  room\n\t1 ", "no room 2"),
    "a quoted value that was cut": (f"bad value '{'x' * 300}", f"bad value '{'yz ' * 200}"),
    "a long message with an id": (f"user 1 {'is not known, ' * 40}", f"user 1000000 {'is not known, ' * 40}"),
    "what follows in a long message": (f"{'no ' * 200}a", f"{'no ' * 200}b"),
}
"""Messages that differ in nothing that matters."""

OTHER: Final[dict[str, tuple[str, ...]]] = {
    "a word": ("no user 1", "no mail 1", "no user"),
    "a word after an apostrophe": ("can't open the file", "can't close the file", "won't open the file"),
    "a word after two apostrophes": ("can't or won't open", "can't or won't close"),
    "a word after a value": ("user 1 is gone", "user 1 is back"),
    "a word before a quoted value": ("no column 'a'", "no table 'a'"),
    "a word between quoted values": ("'a' before 'b'", "'a' after 'b'"),
    "a lonely quote": ('5" pipe is broken', '5" pipe is missing'),
    "a line": ("first\nsecond", "first\nthird"),
    "letters": ("naïve", "naive"),
    "nothing at all": ("", "x"),
}
"""Messages of different causes."""


def cause(message: str) -> str:
    """Return the fingerprint of a failure with this message."""
    return fingerprint("send", Failure(ErrorClass.RETRYABLE, "ValueError", message))


@pytest.mark.parametrize("name", SAME)
def test_messages_of_one_cause_fold_together(name: str) -> None:
    """Numbers, ids and quoted values do not count."""
    assert len({folded(message) for message in SAME[name]}) == 1
    assert len({cause(message) for message in SAME[name]}) == 1


@pytest.mark.parametrize("name", OTHER)
def test_messages_of_different_causes_do_not(name: str) -> None:
    """What is said about the values counts."""
    assert len({folded(message) for message in OTHER[name]}) == len(OTHER[name])
    assert len({cause(message) for message in OTHER[name]}) == len(OTHER[name])


def test_no_two_kinds_of_messages_fold_together() -> None:
    """The table above would prove nothing if everything were the same."""
    assert len({cause(messages[0]) for messages in SAME.values()}) == len(SAME)


def test_a_fingerprint_is_short_text() -> None:
    """Hexadecimal digits, so that it may be typed, and any text makes one."""
    for message in ("", "x", "\x00\udc80", "é" * 5_000):
        assert len(cause(message)) == DIGITS
        assert int(cause(message), 16) >= 0


@pytest.mark.parametrize(
    "change",
    [
        {"error_class": ErrorClass.TIMEOUT},
        {"error_type": "KeyError"},
        {"message": "other"},
        {"traceback": 'File "/srv/mail.py", line 3, in send'},
    ],
    ids=lambda change: next(iter(change)),
)
def test_class_type_message_and_frame_count(change: dict[str, object]) -> None:
    """And so does the task."""
    failure = Failure(ErrorClass.RETRYABLE, "ValueError", "boom")
    other = msgspec.structs.replace(failure, **change)
    assert fingerprint("send", failure) != fingerprint("send", other)
    assert fingerprint("send", failure) != fingerprint("sort", failure)
    assert fingerprint("send", failure) == fingerprint("send", msgspec.structs.replace(failure))


def test_parts_do_not_run_into_each_other() -> None:
    """A task `ab` with a type `c` is not a task `a` with a type `bc`."""
    one = fingerprint("ab", Failure(ErrorClass.RETRYABLE, "c", "d"))
    assert one != fingerprint("a", Failure(ErrorClass.RETRYABLE, "bc", "d"))
    assert one != fingerprint("ab", Failure(ErrorClass.RETRYABLE, "cd", ""))


def test_a_failure_is_marked_with_its_fingerprint() -> None:
    """Whatever it had before; the rest stays."""
    failure = Failure(ErrorClass.RETRYABLE, "ValueError", "boom", "trace", "old")
    found = marked("send", failure)
    assert found == msgspec.structs.replace(failure, fingerprint=fingerprint("send", failure))


def test_only_what_a_failure_stores_of_a_message_is_read() -> None:
    """However long a message is."""
    words = "a bc " * (MESSAGE_CHARS // 5)
    assert folded(words + "tail") == folded(words + "other")
    assert len(folded("word " * 5_000)) <= 300


# ── frames ───────────────────────────────────────────────────────────────────

OURS: Final = '  File "/srv/shop/mail.py", line {}, in send\n    client.post(1)\n'
CALLER: Final = '  File "/srv/shop/orders.py", line 9, in confirm\n    send()\n'
FOREIGN: Final = (
    '  File "/srv/.venv/lib/python3.11/site-packages/httpx/_client.py", line 5, in post\n',
    '  File "/usr/lib/python3/dist-packages/yaml/scanner.py", line 5, in check\n',
    '  File "/usr/lib/python3.11/ssl.py", line 1100, in read\n',
    '  File "C:\\Python\\Lib\\site-packages\\httpx\\_client.py", line 5, in post\n',
    '  File "<frozen importlib._bootstrap>", line 241, in _call\n',
    '  File "/work/src/fairlane/worker/run.py", line 5, in call\n',
)
HEAD: Final = "Traceback (most recent call last):\n"


@pytest.mark.parametrize("inner", ["", *FOREIGN, "".join(FOREIGN)])
def test_the_innermost_frame_of_the_application_counts(inner: str) -> None:
    """Without its line and folder; what it calls of others does not."""
    trace = HEAD + FOREIGN[5] + CALLER + OURS.format(3) + inner + "ssl.SSLError: no\n"
    assert innermost_frame(trace) == "mail.py:send"


def test_a_line_that_moves_is_the_same_frame() -> None:
    """A deployment must not split a cause."""
    one, other = (Failure(ErrorClass.RETRYABLE, "E", "m", HEAD + OURS.format(line)) for line in (3, 4000))
    assert fingerprint("send", one) == fingerprint("send", other)
    assert innermost_frame(HEAD + CALLER) != innermost_frame(HEAD + OURS.format(9))


@pytest.mark.parametrize("trace", [None, "", "no frames here", "".join(FOREIGN)])
def test_without_a_frame_of_the_application_there_is_none(trace: str | None) -> None:
    """Such failures are told apart by the rest."""
    assert innermost_frame(trace) == ""


def test_a_file_on_another_system_is_read_alike() -> None:
    """Backslashes part folders, too."""
    assert innermost_frame('  File "C:\\shop\\mail.py", line 3, in send\n') == "mail.py:send"


def test_frames_inside_a_group_of_errors_are_seen() -> None:
    """They are indented behind a bar."""
    trace = """\
  + Exception Group Traceback (most recent call last):
  |   File "/srv/shop/orders.py", line 9, in confirm
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/shop/mail.py", line 3, in send
    |   File "/usr/lib/python3.11/ssl.py", line 9, in read
    | ssl.SSLError: no
    +------------------------------------
"""
    assert innermost_frame(trace) == "mail.py:send"


def test_an_application_may_live_in_a_folder_of_our_name() -> None:
    """Only what is installed, or lies in our source, is ours."""
    assert innermost_frame('  File "/srv/fairlane/mail.py", line 3, in send\n') == "mail.py:send"
