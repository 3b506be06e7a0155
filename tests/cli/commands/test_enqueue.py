"""`fairlane enqueue` with an application: arguments, options, streams, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import EnqueueUnknown
from fairlane.cli.exits import Exit
from fairlane.model.instants import MINUTE
from fairlane.model.job import JobRecord
from fairlane.model.payload.encoding import decode_arguments
from fairlane.store.contract.registry import TaskRecord
from fairlane.store.sqlite.jobs.facet import SqliteJobs
from tests.cli.shell import Shell
from tests.contract.world import ruined

SHOP = """
from fairlane import Fairlane

app = Fairlane({url!r}, payload={{"sensitive": "allow"}})

@app.task(name="send_fax")
def send_fax(to: str, pages: int = 1, urgent: bool = False) -> None: ...

@app.task(name="anything", queue="bulk")
def anything(value=None) -> None: ...
"""


@pytest.fixture
def shop(store: Shell) -> Shell:
    """A store, and an application in the current folder."""
    store.write("shop.py", SHOP.format(url=store.url))
    return store


def jobs_of(shell: Shell) -> list[JobRecord]:
    """Return what was stored, oldest first."""
    return shell.in_store(lambda world: world.find_all())[::-1]


def enqueue(shell: Shell, *arguments: str, stdin: str | None = None) -> Any:
    """Run the command with the shop's application."""
    return shell.run("--app", "shop:app", "enqueue", *arguments, stdin=stdin)


def test_a_job_is_made_of_pairs(shop: Shell) -> None:
    """Values are parsed as JSON if possible; a parameter annotated str takes the text as it is."""
    ran = enqueue(shop, "send_fax", "to=4930123", "pages=3", "urgent=true", "--tenant", "acme")
    (job,) = jobs_of(shop)
    assert (ran.code, ran.out, ran.err) == (0, f"{job.id} created\n", "")
    assert decode_arguments(job.payload) == {"to": "4930123", "pages": 3, "urgent": True}
    assert (job.tenant, job.queue, job.task) == ("acme", "default", "send_fax")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0017", "0017"), ('"3"', "3"), ("[1, 2]", [1, 2]), ("null", None), ("", ""), ("a=b", "a=b")],
)
def test_a_value_is_json_if_it_reads_as_json(shop: Shell, text: str, value: object) -> None:
    """Anything else is text."""
    assert enqueue(shop, "anything", f"value={text}").code == 0
    assert decode_arguments(jobs_of(shop)[0].payload) == {"value": value}


def test_every_option_reaches_the_job(shop: Shell) -> None:
    """One job with all of them."""
    options = {
        "--tenant": "acme",
        "--queue": "bulk",
        "--priority": "7",
        "--delay": "90s",
        "--expires-in": "2h",
        "--idempotency-key": "fax-7",
        "--dedup-key": "d",
        "--correlation": "c",
        "--created-by": "user:42",
        "--parent": "00000000-0000-0000-0000-000000000007",
        "--max-attempts": "3",
        "--timeout": "1m",
    }
    words = [word for pair in options.items() for word in pair]
    ran = enqueue(shop, "send_fax", "--args", '{"to": "x"}', *words, "--tag", "red", "--tag", "blue")
    assert ran.code == 0, ran.err
    (job,) = jobs_of(shop)
    assert (job.tenant, job.queue, job.priority, job.max_attempts) == ("acme", "bulk", 7, 3)
    assert (job.run_at - job.enqueued_at, job.timeout) == (MINUTE * 3 // 2, MINUTE)
    assert job.expires_at == job.enqueued_at + 120 * MINUTE
    assert (job.idempotency_key, job.dedup_key, job.correlation_id) == ("fax-7", "d", "c")
    assert job.created_by == "user:42"
    assert (job.parent_id is not None, set(job.tags)) == (True, {"red", "blue"})


def test_a_time_may_be_absolute(shop: Shell) -> None:
    """With its zone."""
    ran = enqueue(
        shop, "anything", "--run-at", "2027-01-15T10:00:00+01:00", "--expires-at", "2027-01-15T10:00Z"
    )
    assert ran.code == 0, ran.err
    (job,) = jobs_of(shop)
    assert (job.run_at - job.enqueued_at, job.expires_at) == (60 * MINUTE, job.enqueued_at + 120 * MINUTE)


def test_a_repeated_key_says_that_the_job_existed(shop: Shell) -> None:
    """And on request it is a refusal."""
    first = enqueue(shop, "anything", "--idempotency-key", "k")
    again = enqueue(shop, "anything", "--idempotency-key", "k")
    assert again.out == first.out.replace("created", "existing")
    raised = enqueue(shop, "anything", "--idempotency-key", "k", "--on-duplicate", "raise")
    assert (raised.code, raised.out) == (1, "")
    assert "idempotency key 'k' belongs to job" in raised.err


def test_each_line_of_standard_input_is_a_job(shop: Shell) -> None:
    """Empty lines are none; the number is a remark."""
    ran = enqueue(shop, "anything", "--stdin", stdin='{"value": 1}\n\n{"value": 2}\n{}\n')
    jobs = jobs_of(shop)
    assert (ran.code, ran.err) == (0, "3 job(s) enqueued.\n")
    assert ran.out == "".join(f"{job.id} created\n" for job in jobs)
    assert [decode_arguments(job.payload)["value"] for job in jobs] == [1, 2, None]


def test_a_long_stream_is_stored_in_batches(shop: Shell) -> None:
    """More than one request of the store takes; programs get an object a line."""
    ran = enqueue(shop, "anything", "--stdin", "--json", stdin='{"value": 1}\n' * 1001)
    assert (ran.code, ran.err) == (0, "1001 job(s) enqueued.\n")
    assert len(ran.objects) == 1001 == len({job["id"] for job in ran.objects})


def test_a_bad_line_is_named_and_its_batch_is_not_stored(shop: Shell) -> None:
    """Batches before it are, and were shown."""
    ran = enqueue(shop, "anything", "--stdin", stdin='{"value": 1}\n' * 1000 + '{"value": 2}\nnonsense\n')
    assert (ran.code, len(ran.out.splitlines())) == (2, 1000)
    assert "line 1002 is not a JSON object of arguments" in ran.err
    assert len(jobs_of(shop)) == 1000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["send_fax"], 1, "arguments.to: is missing; the task needs it"),
        (["send_fax", "to=x", "pages=many"], 1, "arguments.pages: is of type str; give"),
        (
            ["send_fax", "to=x", "pagse=1"],
            1,
            "arguments.pagse: is not a parameter of the task; did you mean 'pages'?",
        ),
        (["send_fax", "to"], 2, "'to' is not KEY=VALUE"),
        (["send_fax", "to=x", "pages=1", "pages=2"], 2, "pages is given twice"),
        (["send_fax", "to=x", "--args", "{}"], 2, "give only one of"),
        (["send_fax", "--args", "[1]"], 2, "--args is not a JSON object of arguments"),
        (
            ["send_fax", "to=x", "--delay", "soon"],
            2,
            "'soon' is not a duration; use seconds, or a number with",
        ),
        (["send_fax", "to=x", "--priority", "101"], 1, "priority: is 101; use a whole number, -100 to 100"),
        (["send_fax", "to=x", "--queue", "nowhere"], 1, "queue: nowhere is not declared"),
        (
            ["send_fux", "--tenant", "acme"],
            3,
            "no worker has published a task 'send_fux'; did you mean 'send_fax'?",
        ),
        (["send_fux"], 2, "give --tenant; use `system` for jobs of the application itself"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_stored(
    shop: Shell, arguments: list[str], code: int, message: str
) -> None:
    """With the field, what is wrong, and what would be right."""
    ran = enqueue(shop, *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert jobs_of(shop) == []


def test_every_line_that_does_not_fit_is_named(shop: Shell) -> None:
    """The whole batch is looked through, and none of it is stored."""
    ran = enqueue(shop, "send_fax", "--stdin", stdin='{"to": "x"}\n{"to": 3}\n{}\n')
    assert (ran.code, ran.out) == (1, "")
    assert "[1] arguments.to: is of type int" in ran.err
    assert "[2] arguments.to: is missing" in ran.err
    assert jobs_of(shop) == []


# ── without the application ──────────────────────────────────────────────────

FAX = TaskRecord(
    name="send_fax",
    queue="bulk",
    schema=b'{"properties":{"to":{"type":"string"},"pages":{"type":"integer"}},"required":["to"],'
    b'"additionalProperties":false}',
    max_attempts=3,
)


def test_a_published_task_is_enqueued_by_its_name_alone(store: Shell) -> None:
    """Its home, its attempts and its parameters are those that its worker has published."""
    store.in_store(lambda world: world.register("w1", FAX))
    ran = store.run("enqueue", "send_fax", "to=4930", "pages=3", "--tenant", "acme", "--priority", "4")
    (job,) = jobs_of(store)
    assert (ran.code, ran.out) == (0, f"{job.id} created\n")
    assert decode_arguments(job.payload) == {"to": "4930", "pages": 3}
    assert (job.tenant, job.queue, job.max_attempts, job.priority) == ("acme", "bulk", 3, 4)
    refused = store.run("enqueue", "send_fax", "pages=x", "--tenant", "acme")
    assert refused.code == 1
    assert "  arguments.to: is missing" in refused.err
    assert "  arguments.pages: is of type str" in refused.err


def test_a_task_that_nobody_has_published_is_not_found(store: Shell) -> None:
    """Exit code 3, with the name that was perhaps meant."""
    store.in_store(lambda world: world.register("w1", FAX))
    ran = store.run("enqueue", "send_fex", "to=x", "--tenant", "acme", "--json")
    assert (ran.code, ran.told["error"]) == (3, "UnknownTask")
    assert "did you mean 'send_fax'?" in ran.told["message"]


def test_a_refusal_lists_its_problems_for_programs(shop: Shell) -> None:
    """Field, message, hint and a stable code."""
    ran = enqueue(shop, "send_fax", "to=x", "--priority", "101", "--json")
    assert (ran.told["error"], ran.told["exit"]) == ("InvalidJob", 1)
    (problem,) = ran.told["problems"]
    assert (problem["field"], problem["code"]) == ("priority", "range")


def test_a_new_store_is_made_at_first_use_as_python_does(shell: Shell) -> None:
    """And reported, so that a typing error in the URL shows at once."""
    shell.write("shop.py", SHOP.format(url=shell.url))
    ran = enqueue(shell, "send_fax", "to=4930123", "--tenant", "acme")
    (job,) = jobs_of(shell)
    assert (ran.code, ran.out, ran.err) == (0, f"{job.id} created\n", f"Created a new store: {shell.file}.\n")
    assert enqueue(shell, "send_fax", "to=4930123", "--tenant", "acme").err == ""


def test_without_an_application_no_store_is_made(shell: Shell) -> None:
    """No worker can have published a task there."""
    ran = shell.run("enqueue", "send_fax", "to=1", "--tenant", "acme")
    assert (ran.code, ran.out, shell.file.exists()) == (4, "", False)
    assert f"there is no store at {shell.file}" in ran.err


@pytest.mark.parametrize("is_stream", [False, True])
def test_only_the_jobs_of_a_stream_are_numbered(shop: Shell, is_stream: bool) -> None:
    """One job is not number 0 of anything; of many one wants to know which."""
    for bad in (["--args", '{"to": 5}'], ["to=x", "--priority", "101"]):
        given = ["--stdin", *bad[2:]] if is_stream and bad[0] == "--args" else bad
        ran = enqueue(shop, "send_fax", *given, stdin='{"to": 5}' if "--stdin" in given else None)
        assert ran.code == 1
        assert ("[0]" in ran.err) is ("--stdin" in given)


def test_a_repeat_replaces_a_dead_job_where_asked_for(shop: Shell) -> None:
    """S13: with the key of a job that is dead."""
    same = ("send_fax", "to=x", "--tenant", "acme", "--idempotency-key", "k")
    (first,) = enqueue(shop, *same).out.split()[:1]
    shop.in_store(lambda world: world.run(ruined()))
    assert enqueue(shop, *same).out == f"{first} existing\n"
    (second, word) = enqueue(shop, *same, "--on-duplicate", "replace_dead").out.split()
    assert (second != first, word) == (True, "created")
    assert enqueue(shop, *same, "--on-duplicate", "replace_dead").out == f"{second} existing\n"


@pytest.mark.parametrize("key", [(), ("--idempotency-key", "k")])
def test_an_unknown_outcome_says_how_to_look(
    shop: Shell, key: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S15: in the words of the command; what was sent is not shown."""

    async def lost(_self: object, request: Any) -> Any:
        raise EnqueueUnknown("the answer was lost")

    monkeypatch.setattr(SqliteJobs, "enqueue", lost)
    ran = enqueue(shop, "send_fax", "to=hunter2", *key)
    assert ran.code == Exit.UNKNOWN
    assert "`fairlane jobs show`" in ran.err
    assert "--idempotency-key" in ran.err
    assert "hunter2" not in ran.err
    assert "error.repeat" not in ran.err
