"""`fairlane enqueue`: text becomes what the task's hints name, with the application and without."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from fairlane.app.task.record import task_record_of
from fairlane.cli.application import load
from fairlane.model.payload.encoding import decode_arguments
from tests.cli.shell import Shell

SHOP = """
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum

from fairlane import Fairlane

class Colour(Enum):
    RED = "r"

app = Fairlane({url!r}, config={{}})

@app.task(name="bill")
def bill(
    when: datetime,
    price: Decimal | None = None,
    every: timedelta | None = None,
    days: list[date] | None = None,
    prices: dict[str, Decimal] | None = None,
    colour: Colour | None = None,
    code: str | None = None,
    raw: bytes | None = None,
) -> None: ...
"""

WHEN = datetime(2026, 7, 1, 10, tzinfo=UTC)


@pytest.fixture
def shop(store: Shell) -> Shell:
    """A store in which a worker has introduced itself, and its application in the current folder."""
    store.write("shop.py", SHOP.format(url=store.url))
    app = load("shop:app")
    tasks = [task_record_of(task, app.settings) for task in app.registry]
    store.in_store(lambda world: world.register("w1", *tasks))
    return store


def arguments_of(shell: Shell) -> dict[str, Any]:
    """Return the arguments of the newest job."""
    job = shell.in_store(lambda world: world.find_all())[0]
    return decode_arguments(job.payload, is_showing=True)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("price=1.20", Decimal("1.20")),
        ("price=3", Decimal(3)),
        ("price=null", None),
        ("every=90", timedelta(seconds=90)),
        ("every=90s", timedelta(seconds=90)),
        ("every=PT1H", timedelta(hours=1)),
        ('days=["2026-07-01"]', [date(2026, 7, 1)]),
        ('prices={"a": "1.20"}', {"a": Decimal("1.20")}),
        ("colour=RED", "Colour.RED"),
        ("code=17", "17"),
        ("code=null", None),
        ("raw=1234", b"\xd7m\xf8"),
    ],
)
def test_a_pair_becomes_what_its_parameter_is(shop: Shell, pair: str, value: object) -> None:
    """As JSON where that fits, otherwise as text; a decimal number loses no digit."""
    for words in ([], ["--app", "shop:app"]):
        ran = shop.run(*words, "enqueue", "bill", "--tenant", "acme", "when=2026-07-01T10:00:00Z", pair)
        assert ran.code == 0, ran.err
        found = arguments_of(shop)
        assert (found["when"], found[pair.partition("=")[0]]) == (WHEN, value)


def test_objects_and_lines_are_typed_too(shop: Shell) -> None:
    """--args and --stdin; every line that does not fit is named with the form to use, and none is stored."""
    for words in ([], ["--app", "shop:app"]):
        run = [*words, "enqueue", "bill", "--tenant", "acme"]
        assert shop.run(*run, "--args", '{"when": "2026-07-01T10:00:00Z"}').code == 0
        assert arguments_of(shop)["when"] == WHEN
        assert shop.run(*run, "--stdin", stdin='{"when": "2026-07-01T12:00:00+02:00"}\n').code == 0
        assert arguments_of(shop)["when"] == WHEN
        ran = shop.run(*run, "--stdin", stdin='{"when": "2026-07-01T10:00:00Z"}\n{"when": "noon"}\n')
        assert (ran.code, ran.out) == (1, "")
        message = "[1] arguments.when: cannot be read as date-time; give a date and time with Z or an offset"
        assert message in ran.err
