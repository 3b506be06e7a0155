"""How answers are printed: on a terminal, in a pipe, for programs; stored text cannot do harm."""

from __future__ import annotations

import io
import json
import re

import pytest

from fairlane.cli.render.escaping import in_json, one_line
from fairlane.cli.render.output import Output, TableView
from tests.cli.shell import Shell
from tests.contract.world import World, failed, payload

ROWS = [("bulk", 7, None), ("mail", 1200, "[red]x[/red]")]
VIEW: TableView[tuple[str, int, str | None]] = TableView(
    {"QUEUE": lambda row: row[0], "JOBS": lambda row: row[1], "NOTE": lambda row: row[2]},
    lambda row: {"queue": row[0], "jobs": row[1]},
)
BAIT = "\x1b[2J\x1b]0;owned\x07\rA\x9b1mB\u202eC\nD\x7f"


def shown(*, is_rich: bool = False, is_json: bool = False, has_color: bool = True) -> str:
    """Print the rows and return the output."""
    out = io.StringIO()
    Output(out, is_rich=is_rich, is_json=is_json, has_color=has_color, width=60).table(ROWS, VIEW)
    return out.getvalue()


def test_a_pipe_gets_plain_aligned_text() -> None:
    """Numbers to the right, a dash for nothing, no trailing space."""
    assert shown() == "QUEUE  JOBS  NOTE\nbulk      7  -\nmail   1200  [red]x[/red]\n"


def test_a_terminal_gets_a_table_in_which_data_is_never_markup() -> None:
    """The same cells under a bold head; a name in brackets is a name."""
    text = shown(is_rich=True)
    assert "\x1b[1m" in text
    assert "[red]x[/red]" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["bulk", "7", "-"] in rows


def test_without_colour_a_terminal_gets_no_colour() -> None:
    """Bold is no colour; colours are."""
    assert "\x1b[3" not in shown(is_rich=True, has_color=False)


def test_a_narrow_terminal_breaks_texts_but_neither_names_nor_numbers() -> None:
    """They must be copyable; an empty column is left out."""
    columns = {
        "ID": lambda row: row,
        "N": lambda _: 5,
        "NONE": lambda _: None,
        "WHY": lambda _: "so it is " * 9,
    }
    view: TableView[str] = TableView(columns, lambda row: {"id": row})
    out = io.StringIO()
    Output(out, is_rich=True, width=30).table(["0123456789" * 4], view)
    plain = re.sub("\x1b\\[[0-9;]*m", "", out.getvalue())
    head, first, *rest = [line.rstrip() for line in plain.splitlines()]
    assert head.split() == ["ID", "N", "WHY"]
    assert first == f"{'0123456789' * 4}  5  so it is so it is so"
    broken = [first[45:], *(line.strip() for line in rest)]
    assert " ".join(broken) == ("so it is " * 9).strip()
    assert max(map(len, broken)) <= 20


def test_programs_get_an_object_a_line() -> None:
    """In the order of the answer."""
    assert [json.loads(line) for line in shown(is_json=True).splitlines()] == [
        {"queue": "bulk", "jobs": 7},
        {"queue": "mail", "jobs": 1200},
    ]


def test_output_that_is_no_terminal_is_plain(shell: Shell) -> None:
    """It is the default."""
    assert Output(io.StringIO())._is_rich is False


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800"]
)
def test_no_character_that_a_terminal_obeys_gets_through(character: str) -> None:
    """Not in text and not in JSON, where it stays the same value."""
    assert character not in one_line(f"a{character}b")
    assert "a" in one_line(f"a{character}b")
    if character > "\x1f":  # JSON itself has escaped the others
        assert character not in in_json(json.dumps(character, ensure_ascii=False))
        assert json.loads(in_json(json.dumps(character, ensure_ascii=False))) == character


def test_text_that_tenants_stored_cannot_write_to_the_terminal(store: Shell) -> None:
    """Names are checked at the door; arguments, errors and metadata are not, and are shown as codes."""

    async def work(world: World) -> None:
        await world.enqueue(payload=payload(note=BAIT), max_attempts=9)
        await world.run(failed(message=BAIT))

    store.in_store(work)
    (job,) = store.run("jobs", "list", "--json").objects
    answers = [
        store.output_of("jobs", "list"),
        store.output_of("jobs", "list", "--json"),
        store.output_of("jobs", "show", job["id"], "--traceback"),
        store.output_of("jobs", "show", job["id"], "--json"),
        store.output_of("explain", job["id"]),
    ]
    for answer in answers:
        assert set(answer) & set(BAIT.replace("\n", "")) <= set("[2J]0;ownedA1mBCD")
    (shown,) = store.run("jobs", "show", job["id"], "--json").objects
    assert shown["arguments"]["note"] == BAIT


def test_an_error_that_repeats_what_it_was_given_is_harmless_too(shell: Shell) -> None:
    """A URL or a name from a script may hold anything."""
    ran = shell.run("--app", "x\x1b[2J:y", "jobs", "list")
    assert ran.code == 5
    assert "\x1b" not in ran.err
