"""The ledger's lines: what is written is read back; torn ends differ from garbage."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.lab.ledger import (
    KEYS,
    Acknowledged,
    Attempted,
    Bound,
    Ceiling,
    Counted,
    Due,
    Ended,
    Fired,
    Found,
    LedgerError,
    Opened,
    Outage,
    Paid,
    Permitted,
    Reading,
    Reclaimed,
    Record,
    Released,
    Settled,
    Stale,
    Started,
    Torn,
    Withdrawn,
    decode_lines,
    encode_line,
)
from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle.states import Event, Home, State

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "ledger.md"

ONE_OF_EACH: list[tuple[Record, bytes]] = [
    (
        Attempted(job="a", tenant="acme", queue="mail", task="m.send", at=1, key="k", batch="b"),
        b'{"e":"attempted","j":"a","t":"acme","q":"mail","k":"m.send","at":1,"i":"k","b":"b"}\n',
    ),
    (
        Acknowledged(job="a", tenant="acme", queue="mail", task="m.send", at=2, gate="g", created=False),
        b'{"e":"acknowledged","j":"a","t":"acme","q":"mail","k":"m.send","at":2,"g":"g","c":false}\n',
    ),
    (
        Due(job="a", tenant="acme", queue="mail", task="m.send", at=3, schedule="nightly", slot=60),
        b'{"e":"due","j":"a","t":"acme","q":"mail","k":"m.send","at":3,"schedule":"nightly","slot":60}\n',
    ),
    (
        Fired(job="a", tenant="acme", queue="q", task="t", at=4, once=True, schedule="nightly", slot=60),
        b'{"e":"fired","j":"a","t":"acme","q":"q","k":"t","at":4,"once":true,"schedule":"nightly","slot":60}\n',
    ),
    (
        Started(job="a", attempt=1, fence=17, worker="w", pid=3, at=5, tenant="acme"),
        b'{"e":"started","j":"a","n":1,"f":17,"w":"w","p":3,"at":5,"t":"acme"}\n',
    ),
    (
        Ended(job="a", attempt=1, fence=17, outcome="raised", at=6),
        b'{"e":"ended","j":"a","n":1,"f":17,"outcome":"raised","at":6}\n',
    ),
    (
        Settled(job="a", attempt=1, fence=17, event=Event.RETRY, state=State.DELAYED, at=7),
        b'{"e":"settled","j":"a","n":1,"f":17,"event":"retry","s":"delayed","at":7}\n',
    ),
    (Stale(job="a", fence=17, at=8), b'{"e":"stale","j":"a","f":17,"at":8}\n'),
    (
        Reclaimed(job="a", fence=17, state=State.READY, at=9),
        b'{"e":"reclaimed","j":"a","f":17,"s":"ready","at":9}\n',
    ),
    (Withdrawn(job="a", state=State.DEAD, at=10), b'{"e":"withdrawn","j":"a","s":"dead","at":10}\n'),
    (
        Found(job="ä", home=Home.HISTORY, state=State.SUCCEEDED, attempt=2, failures=1),
        '{"e":"found","j":"ä","h":"history","s":"succeeded","n":2,"failures":1}\n'.encode(),
    ),
    (Reading(hot=0, history=1, dead=2), b'{"e":"reading","hot":0,"history":1,"dead":2}\n'),
    (
        Bound(limit=2, queue="mail", tenant="acme", per=9, burst=3, from_at=1, until=5, slack=4),
        b'{"e":"bound","limit":2,"q":"mail","t":"acme","per":9,"burst":3,"from":1,"until":5,"slack":4}\n',
    ),
    (Paid(job="a", fence=17, total=20_000, at=6), b'{"e":"paid","j":"a","f":17,"total":20000,"at":6}\n'),
    (
        Permitted(job="a", fence=17, breaker="m", at=5, tenant="acme"),
        b'{"e":"permitted","j":"a","f":17,"breaker":"m","at":5,"t":"acme"}\n',
    ),
    (
        Released(job="a", fence=17, breaker="m", at=6, passed=False),
        b'{"e":"released","j":"a","f":17,"breaker":"m","at":6,"passed":false}\n',
    ),
    (
        Opened(breaker="m", at=3, until=9, tenant="acme", ramp=2, slack=1),
        b'{"e":"opened","breaker":"m","at":3,"until":9,"t":"acme","ramp":2,"slack":1}\n',
    ),
    (
        Ceiling(budget="ai", ceiling=9, estimate=2, tenant="acme", from_at=1, until=5, slack=4),
        b'{"e":"ceiling","budget":"ai","ceiling":9,"estimate":2,"t":"acme","from":1,"until":5,"slack":4}\n',
    ),
    (
        Counted(budget="ai", tenant="acme", task="t", spent=9),
        b'{"e":"counted","budget":"ai","t":"acme","k":"t","spent":9}\n',
    ),
    (Outage(at=1, until=2, loses=3), b'{"e":"outage","at":1,"until":2,"loses":3}\n'),
    (Torn(size=4), b'{"e":"torn","size":4}\n'),
]
LINES = [line for _, line in ONE_OF_EACH]


@pytest.mark.parametrize(("record", "line"), ONE_OF_EACH, ids=lambda value: type(value).__name__)
def test_a_record_is_one_line_and_comes_back_equal(record: Record, line: bytes) -> None:
    """The lines are a promise: campaigns add to ledgers that older versions wrote."""
    assert encode_line(record) == line
    assert list(decode_lines([line])) == [record]


def test_every_type_of_record_has_a_line_here() -> None:
    """A new record is not forgotten."""
    assert {type(record) for record, _ in ONE_OF_EACH} == set(get_args(Record))


@given(st.sampled_from(LINES), st.data())
def test_a_line_cut_anywhere_is_torn_and_never_another_record(line: bytes, data: st.DataObject) -> None:
    """A killed writer leaves some beginning of its last line."""
    size = data.draw(st.integers(1, len(line) - 2))
    assert list(decode_lines([*LINES, line[:size]])) == [record for record, _ in ONE_OF_EACH] + [
        Torn(size=size)
    ]


@pytest.mark.parametrize("line", LINES)
def test_a_last_line_without_its_newline_is_read(line: bytes) -> None:
    """The record is whole; only the newline was cut."""
    assert list(decode_lines([line[:-1]])) == list(decode_lines([line]))


def test_a_name_with_a_newline_stays_on_one_line() -> None:
    """What a worker is called cannot break the file."""
    line = encode_line(Started(job="a", attempt=1, fence=1, worker="w\n1", pid=1, at=1))
    assert line.count(b"\n") == 1


def test_a_torn_line_in_the_middle_is_an_error() -> None:
    """A process appended after a crash, or a file was cut and joined."""
    with pytest.raises(LedgerError, match="not a record: it is torn") as caught:
        list(decode_lines([LINES[0], LINES[1][:20], LINES[2]]))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"not json",
        b"\x00\x00\x00",
        b'{"j":"a"',
        b'{"e":"stale","j":"a","f":7',
        b'{"e":"stale","j":"\xff","f":7,"at":1}\n',
        b"[]\n",
        b"null",
        b'{"e":"unheard","j":"a"}\n',
        b'{"e":"unheard","j":"a"}',
        b'{"e":"stale","j":"a","f":7,"at":1,"more":1}\n',
        b'{"e":"stale","j":"a","f":0,"at":1}\n',
        b'{"e":"stale","j":"a","f":7}\n',
        b'{"e":"withdrawn","j":"a","s":"gone","at":1}\n',
        b'{"e":"bound","limit":1}\n',
        b'{"e":"bound","limit":0,"q":"mail"}\n',
        LINES[0] + LINES[1],
    ],
)
def test_garbage_is_an_error_that_names_the_line(line: bytes) -> None:
    """Garbage in a ledger is an error, wherever it is."""
    lines = [LINES[0], line, LINES[1]] if not line.endswith(b'"f":7') else [LINES[0], line + b"\n"]
    with pytest.raises(LedgerError) as caught:
        list(decode_lines(lines))
    assert caught.value.line == 2
    assert isinstance(caught.value, FairlaneError)


@pytest.mark.parametrize("line", [b"not json", b"\x00\x00\x00", b"null", b'{"j":"a"'])
def test_garbage_at_the_end_is_not_mistaken_for_a_torn_line(line: bytes) -> None:
    """A torn line begins as every line does."""
    with pytest.raises(LedgerError):
        list(decode_lines([LINES[0], line]))


@pytest.mark.parametrize(
    "wrong", [{"limit": 1}, {"limit": 0, "gate": "g"}, {"limit": 1, "gate": "g", "per": 0}]
)
def test_a_bound_that_binds_nothing_is_refused(wrong: dict[str, int]) -> None:
    """Also when it is built and not read."""
    with pytest.raises(ValueError, match=r"bound names|or more"):
        Bound(**wrong)  # type: ignore[arg-type]


def test_the_page_names_every_record_and_every_key() -> None:
    """The author of a recorder in another language has only the page."""
    page = PAGE.read_text(encoding="utf-8")
    assert [
        tag for tag in (kind.__name__ for kind in get_args(Record)) if f"| `{tag.lower()}` |" not in page
    ] == []
    assert [field for field, key in KEYS.items() if f"| `{key}` | {field}" not in page] == []
