"""Hostile values: each is refused in a line or two, never with a traceback, or is harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

SHOP = "from fairlane import Fairlane\napp = Fairlane({!r})\n@app.task(name='t')\ndef t(a: object = 0): ...\n"
DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000
LONG = "9" * 400
ID = "00000000-0000-7000-8000-000000000000"
PAUSE = ("pause", "queue", "default", "--note", "x")
ENQUEUE = ("--app", "shop:app", "enqueue", "t", "--tenant", "acme")

REFUSED: list[tuple[tuple[str, ...], str]] = [
    ((*ENQUEUE, "--args", DEEP), "--args is nested too deeply"),
    ((*ENQUEUE, "--args", "[" * 10_000), "--args is not a JSON object"),
    ((*ENQUEUE, "--args", "nonsense"), "--args is not a JSON object"),
    ((*ENQUEUE, f"a={DEEP}"), "is nested too deeply"),
    ((*ENQUEUE, "--args", "\ud800"), "is not valid UTF-8"),
    ((*ENQUEUE, "a=\ud800"), "is not valid UTF-8"),
    ((*ENQUEUE, "--priority", "x" * 100_000), "is not a valid integer"),
    ((*ENQUEUE, "--on-duplicate", "x" * 100_000), "is not one of"),
    ((*ENQUEUE, "--delay", LONG), "is too long; the maximum is 36500d"),
    ((*ENQUEUE, "--expires-in", "99999999d"), "is too long"),
    ((*ENQUEUE, "--timeout", "1e999"), "is not a duration"),
    ((*ENQUEUE, "--run-at", "9999-12-31T23:59:59Z"), "out of range; give a time from 1970 to 2255"),
    ((*ENQUEUE, "--expires-at", "0001-01-01T00:00:00+23:59"), "out of range"),
    (("limits", "queue", "default", "--rate", f"{LONG}/second"), "is not a rate"),
    (("limits", "queue", "default", "--rate", f"1/second+{LONG}"), "is not a rate"),
    (
        ("limits", "queue", "default", "--rate", "1/day+999999999"),
        "no more than its limit allows in 285 years",
    ),
    (("limits", "queue", "default", "--rate", "1/fortnight"), "must be one of second"),
    (("limits", "queue", "default", "--waiting", LONG), "is not a whole number; give one of up to 9 digits"),
    (("limits", "queue", "default", "--max-waiting", LONG), "is not a whole number"),
    (("limits", "x" * 100_000, "default"), "is not one of"),
    ((*PAUSE, "--for", LONG), "is too long"),
    ((*PAUSE, "--for", "99999999d"), "is too long"),
    ((*PAUSE, "--until", "0001-01-01T00:00:00+23:59"), "out of range"),
    (("pause", "queue", "default", "--note", ""), "give a reason"),
    (("pause", "queue", "default", "--note", "\ud800"), "is not valid UTF-8"),
    (("tenants", "forget", "acme", "--note", " ", "--yes"), "give a reason"),
    (("tenants", "list", "--cursor", "\ud800"), "is not valid UTF-8"),
    (("jobs", "list", "--since", "99999999d"), "is not a time"),
    (("jobs", "list", "--until", "9999-12-31T23:59:59Z"), "out of range"),
    (("jobs", "list", "--limit", LONG * 100), "is not"),
    (("jobs", "show", "x" * 100_000), "Invalid value"),
    (("cancel", "\x00"), "Invalid value"),
]


@pytest.fixture
def shop(store: Shell) -> Shell:
    """A store, and an application in the current folder."""
    store.write("shop.py", SHOP.format(store.url))
    return store


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_that_nobody_means_is_a_usage_error(
    shop: Shell, words: tuple[str, ...], message: str
) -> None:
    """Exit code 2 and one line of bounded length; for programs one object."""
    ran = shop.run(*words)  # raises what is not caught
    assert (ran.code, ran.out) == (2, "")
    (line,) = [line for line in ran.err.splitlines() if line.startswith("Error: ")]
    assert message in line
    assert len(ran.err) < 1_500
    told = shop.run("--json", *words).told
    assert (told["exit"], message in told["message"]) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "list", "--since", "36500d"),
        (*PAUSE, "--for", "36500d"),
        ("limits", "queue", "default", "--rate", "999999999/second"),
        ("limits", "queue", "default", "--waiting", "999999999"),
        (*ENQUEUE, f"a={LONG}"[:20]),
    ],
)
def test_the_largest_values_are_taken(shop: Shell, words: tuple[str, ...]) -> None:
    """The bounds are where stores can still count."""
    assert shop.run(*words).code == 0
    assert shop.run("jobs", "peek", "default").code == 0


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://127.0.0.1:1/0?colour=red", "no option 'colour'"),
        ("redis://127.0.0.1:1/0?ssl_check_hostname=perhaps", "write rediss://"),
        ("rediss://127.0.0.1:1/0?ssl_check_hostname=perhaps", None),
        ("postgresql://127.0.0.1:1/d?shema=x", "did you mean schema?"),
        ("postgresql://127.0.0.1:99999/d", "percent-encode"),
        (f"sqlite:///{'x' * 5_000}", ": File name too long"),
        ("sqlite:///a%00b", "write # as %23"),
        ("sqlite:///x.db?colour=red", "no option 'colour'"),
    ],
)
def test_a_url_that_nobody_means_is_one_line(shell: Shell, url: str, message: str | None) -> None:
    """A matter of settings, or a store that does not exist."""
    ran = shell.run("jobs", "count", url=url)
    assert ran.code in {4, 5}
    assert ran.err.startswith("Error: ")
    assert message is None or message in ran.err


@pytest.mark.parametrize("mode", ["0", "1"])
def test_a_stream_that_is_no_text_names_the_line(shop: Shell, mode: str) -> None:
    """What came before in whole batches is stored; this one is not."""
    words = [
        sys.executable,
        "-m",
        "fairlane",
        "--app",
        "shop:app",
        "enqueue",
        "t",
        "--tenant",
        "a",
        "--stdin",
    ]
    ran = subprocess.run(  # noqa: S603 (our own command)
        [*words, "--json"], input=b'{"a": 1}\n\xff\n', capture_output=True, cwd=shop.folder, check=False,
        env={**os.environ, "PYTHONUTF8": mode, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert ran.returncode == 2
    assert "is not valid UTF-8" in json.loads(ran.stderr)["message"]
