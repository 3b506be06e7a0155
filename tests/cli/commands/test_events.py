"""`fairlane events`: what happened, listed or followed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fairlane.model.instants import to_datetime
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.budget import Account, BudgetRules, alert
from tests.cli.shell import Shell
from tests.contract.world import World
from tests.duties.journals.crew import append, tell
from tests.unmeasured import without_coverage

DEAD = NewEntry(
    kind="dead_letter",
    tenant="acme",
    subject="6948219d26ca6492",
    count=3,
    body=b'{"created_by":null,"job":"01a1","queue":"bulk","task":"bill"}',
)
LOST = NewEntry(kind="worker_lost", subject="w1", body=b'{"queues":["bulk"]}')


@pytest.fixture
def happened(store: Shell) -> Shell:
    """Two events, a second apart."""

    async def work(world: World) -> None:
        await append(world, DEAD)
        world.advance(1)
        await append(world, LOST)
        await tell(world)

    store.in_store(work)
    return store


def test_events_are_listed_newest_first(happened: Shell) -> None:
    """The whole table."""
    head, last, first = happened.output_of("events").splitlines()
    assert head.split() == ["NUMBER", "AT", "SEVERITY", "KIND", "COUNT", "TENANT", "SUBJECT", "ABOUT"]
    assert last.split("  ")[0] == "2"
    assert 'worker_lost      1  -       w1                queues ["bulk"]' in last
    assert first.endswith("dead_letter      3  acme    6948219d26ca6492  task bill, queue bulk, job 01a1")


def test_programs_get_every_field(happened: Shell) -> None:
    """An object a line."""
    last, first = happened.run("--json", "events", "list").objects
    assert (last["number"], last["severity"], last["addressee"]) == (2, "error", "operators")
    assert last["tenant"] is None
    assert (first["count"], first["body"]["queue"], first["kind"]) == (3, "bulk", "dead_letter")


def test_amounts_and_instants_are_said_in_words(store: Shell) -> None:
    """Programs keep millionths and microseconds beside the text."""
    account = Account(1_800_000_000_000_000, 1_801_000_000_000_000, spent=412_500_000)
    told = alert("ai", "acme", BudgetRules(500_000_000, "USD"), account, 80)

    async def work(world: World) -> None:
        await append(world, told)
        await tell(world)

    store.in_store(work)
    (_, line) = store.output_of("events").splitlines()
    words = (
        "Budget ai: 412.50 of 500.00 USD are spent, 80 % is reached; the period ends 2027-01-26 21:46 UTC."
    )
    assert line.endswith(words)
    (one,) = store.run("--json", "events", "list").objects
    assert (one["text"], one["body"]["spent"], one["body"]["ceiling"]) == (words, 412_500_000, 500_000_000)


def test_every_filter_narrows_the_list(happened: Shell) -> None:
    """By kind, subject, tenant and time, page by page."""
    now = to_datetime(happened.clock.now()).isoformat()

    def found(*options: str) -> list[int]:
        return [one["number"] for one in happened.run("--json", "events", "list", *options).objects]

    assert found("--kind", "worker_lost") == found("--subject", "w1") == found("--since", now) == [2]
    assert found("--tenant", "acme") == found("--until", now) == [1]
    assert found("--queue", "bulk") == found("--task", "bill") == [1]
    assert found("--queue", "bulk", "--task", "mail") == []
    first = happened.run("--json", "events", "list", "--limit", "1")
    assert found("--cursor", first.err.split()[-1]) == [1]
    assert "No event matches." in happened.output_of("events", "list", "--kind", "job_stuck")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--kind", "dead_leter"), "dead_leter"),
        (("list", "--cursor", "x"), "--cursor"),
        (("tail", "--after", "-1"), "--after"),
    ],
)
def test_a_wrong_command_line_is_refused(happened: Shell, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2."""
    refused = happened.run("events", *arguments)
    assert refused.code == 2
    assert words in refused.err


@pytest.mark.parametrize("is_json", [False, True])
def test_events_are_followed_a_line_each(happened: Shell, *, is_json: bool) -> None:
    """A real process, since it would never end by itself."""
    words = ["--url", happened.url, *(["--json"] if is_json else []), "events", "tail", "--after", "0"]
    with subprocess.Popen(  # noqa: S603 (our own command)
        [sys.executable, "-m", "fairlane", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=without_coverage(),
        cwd=happened.folder,
    ) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        process.terminate()
    if is_json:
        assert [json.loads(line)["number"] for line in (first, second)] == [1, 2]
    else:
        assert first.endswith(
            "  1 error dead_letter ×3 acme 6948219d26ca6492  (task bill, queue bulk, job 01a1)\n"
        )
        assert second.endswith('  2 error worker_lost w1  (queues ["bulk"])\n')
