"""`fairlane jobs`: what an operator reads, whole."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import MINUTE
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import Failed, Succeeded
from fairlane.store.contract.registry import TaskRecord
from tests.cli.shell import Shell
from tests.contract.world import World, payload


def test_jobs_are_listed_newest_first_in_aligned_columns(store: Shell) -> None:
    """The whole table, as it is read in a pipe."""
    first = store.in_store(lambda world: world.enqueue(task="send_fax"))
    store.clock.advance(90)
    second = store.in_store(lambda world: world.enqueue("globex", queue="bulk", delay=MINUTE, max_attempts=3))
    assert store.output_of("jobs", "list") == (
        f"{'ID':36}  STATE    TENANT  QUEUE    TASK      ATTEMPT  ENQUEUED    BECAUSE\n"
        f"{second.id}  delayed  globex  bulk     noop      0/3      now         time\n"
        f"{first.id}  ready    acme    default  send_fax  0/5      1m 30s ago  -\n"
    )


def test_an_empty_list_says_so_and_is_empty_for_programs(store: Shell) -> None:
    """A sentence for people, nothing for a loop."""
    assert store.output_of("jobs", "list") == "No job matches.\n"
    assert store.output_of("jobs", "list", "--json") == ""


@pytest.mark.parametrize(
    "filters",
    [
        ["--tenant", "globex"],
        ["--queue", "bulk"],
        ["--task", "sweep"],
        ["--state", "delayed"],
        ["--state", "delayed", "--state", "dead"],
        ["--correlation", "c"],
        ["--created-by", "user:42"],
        ["--tag", "red"],
        ["--metadata", "step=3"],
        [
            "--metadata",
            "at.page=7",
            "--metadata",
            "plan=pro",
            "--metadata",
            "zip=007",
            "--metadata",
            "x=null",
        ],
        ["--metadata", 'count="3"'],
        ["--parent", "00000000-0000-0000-0000-000000000007"],
        ["--since", "2027-01-15T08:00:01Z"],
        ["--since", "2027-01-15T09:00:01+01:00", "--until", "2027-01-15T08:00:11Z"],
    ],
)
def test_each_filter_narrows_to_the_job_that_meets_it(store: Shell, filters: list[str]) -> None:
    """The option reaches the filter that it is named after."""

    async def two(world: World) -> UUID:
        await world.enqueue()
        world.advance(10)
        job = await world.enqueue(
            "globex",
            queue="bulk",
            task="sweep",
            delay=MINUTE,
            correlation_id="c",
            created_by="user:42",
            tags=("red",),
            metadata=b'{"step":3,"at":{"page":7},"plan":"pro","zip":"007","x":null,"count":"3"}',
            parent_id=UUID(int=7),
        )
        return job.id

    wanted = store.in_store(two)
    assert [job["id"] for job in store.run("jobs", "list", *filters, "--json").objects] == [str(wanted)]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["step"], "'step' is not KEY=VALUE"),
        (["=3"], "'=3' is not KEY=VALUE"),
        (["step=[3]"], "step: use text, a number, true, false or null"),
        (["step=3", "step=4"], "each key may be given once"),
    ],
)
def test_metadata_that_cannot_be_compared_is_refused(store: Shell, pairs: list[str], words: str) -> None:
    """Exit code 2."""
    refused = store.run("jobs", "list", *(part for pair in pairs for part in ("--metadata", pair)))
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err


def test_a_long_list_stops_and_goes_on_with_its_cursor(store: Shell) -> None:
    """The cursor is a remark: it does not get into the table."""
    jobs = store.in_store(lambda world: world.enqueue_many(5))
    first = store.run("jobs", "list", "--limit", "3", "--json")
    assert first.err.startswith("There may be more: continue with --cursor ")
    cursor = first.err.split()[-1]
    rest = store.run("jobs", "list", "--limit", "3", "--cursor", cursor, "--json")
    assert rest.err == ""
    assert [job["id"] for job in first.objects + rest.objects] == [str(job.id) for job in jobs[::-1]]


def test_a_list_may_be_longer_than_a_page_of_the_store(store: Shell) -> None:
    """Pages are put together until the limit is reached."""
    store.in_store(lambda world: world.enqueue_many(700))
    store.in_store(lambda world: world.enqueue_many(700))
    assert len(store.run("jobs", "list", "--limit", "1200", "--json").objects) == 1200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--cursor", "nonsense"], "'nonsense' is not a cursor"),
        (["list", "--tenant", "a b"], "'a b' is not a valid tenant name; use 1 to 128"),
        (["list", "--state", "reddy"], "'reddy' is not one of 'delayed', 'ready'"),
        (["list", "--since", "yesterday"], "'yesterday' is not a time; write it as 2026-11-15T17:00:00Z"),
        (["list", "--since", "2026-01-01T00:00:00"], "has no time zone; add Z for UTC"),
        (["list", "--limit", "0"], "0 is not in the range x>=1"),
        (["show", "nonsense"], "'nonsense' is no job id; give a UUID"),
        (["peek", "Bulk"], "'Bulk' is not a valid queue name"),
        (["list", "--tag", ""], "'' is not a valid correlation id, creator or tag; use 1 to 255 bytes"),
        (["list", "--correlation", "x" * 256], "is not a valid correlation id, creator or tag"),
        (["count", "--tag", "\n"], "is not a valid correlation id, creator or tag"),
        (["count", "--tag", "x", "--cursor", "x"], "'x' is not a cursor"),
    ],
)
def test_a_bad_value_is_a_usage_error_that_says_what_would_be_right(
    store: Shell, arguments: list[str], message: str
) -> None:
    """Exit code 2, and the value is named."""
    ran = store.run("jobs", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_counts_are_by_state_and_every_state_is_there(store: Shell) -> None:
    """Aligned for people, numbers for programs, narrowed on request."""
    store.in_store(lambda world: world.enqueue_many(12))
    store.in_store(lambda world: world.enqueue("globex", delay=MINUTE))
    assert store.output_of("jobs", "count") == (
        "delayed    1\nready      12\nrunning    0\nsucceeded  0\ndead       0\ncancelled  0\n"
    )
    (counts,) = store.run("jobs", "count", "--tenant", "globex", "--json").objects
    assert counts == {
        **{state.value: int(state is State.DELAYED) for state in State},
        "because": {},
        "looked_at": 1,
        "is_complete": True,
        "is_finished": False,
        "cursor": None,
    }


def test_counts_by_a_tag_say_what_they_looked_at(store: Shell) -> None:
    """S51: by any filter, apart by reason, and with a cursor where not everything was looked at."""
    parent = store.in_store(lambda world: world.enqueue())
    store.in_store(lambda world: world.enqueue(tags=("import-7",), delay=MINUTE, parent_id=parent.id))
    store.in_store(lambda world: world.enqueue(tags=("import-7",), correlation_id="r1", created_by="ann"))
    lines = store.output_of("jobs", "count", "--tag", "import-7").splitlines()
    assert lines[:2] == ["delayed    1 (1 time)", "ready      1"]
    for arguments, number in (
        (["--parent", str(parent.id)], 1),
        (["--correlation", "r1"], 1),
        (["--created-by", "ann"], 1),
        (["--created-by", "Ann"], 0),
        (["--task", "other"], 0),
        (["--state", "ready"], 2),
        (["--tag", "import-7", "--state", "ready"], 1),
        (["--because"], 3),
    ):
        (counts,) = store.run("jobs", "count", *arguments, "--json").objects
        assert sum(counts[state.value] for state in State) == number, arguments
    ran = store.run("jobs", "count", "--tag", "import-7", "--most", "2")
    assert "2 job(s) were read, and there are more" in ran.err
    cursor = ran.err.rsplit(maxsplit=1)[-1]
    (rest,) = store.run("jobs", "count", "--tag", "import-7", "--cursor", cursor, "--json").objects
    assert (rest["ready"], rest["is_complete"]) == (1, True)


def test_peek_shows_the_order_of_claims(store: Shell) -> None:
    """The higher priority first, whatever came first."""
    low = store.in_store(lambda world: world.enqueue())
    high = store.in_store(lambda world: world.enqueue(priority=9))
    shown = store.run("jobs", "peek", "default", "--json").objects
    assert [job["id"] for job in shown] == [str(high.id), str(low.id)]
    assert len(store.run("jobs", "peek", "default", "-n", "1", "--json").objects) == 1
    assert store.output_of("jobs", "peek", "bulk") == "No job in queue bulk can be claimed now.\n"


# ── one job ──────────────────────────────────────────────────────────────────


async def failed_fax(world: World) -> UUID:
    """Make a job that failed once, with secrets in its arguments and in its error."""
    job = await world.enqueue(
        task="send_fax",
        payload=payload(to="+49 30", password="hunter2"),
        timeout=MINUTE,
        metadata=b'{"password":"9"}',
    )
    world.advance(2)
    claim = await world.claim_one()
    world.advance(1.5)
    trace = "Traceback:\n  line 1\nFaxError: token=abc123secret at host"
    failure = Failure(ErrorClass.RETRYABLE, "FaxError", "password=hunter2 was refused", trace)
    await world.settle(claim, Failed(failure))
    return job.id


def test_a_job_is_shown_whole_and_its_secrets_are_not(store: Shell) -> None:
    """S6: by field name and by pattern, in arguments, metadata and errors."""
    id = store.in_store(failed_fax)
    assert store.output_of("jobs", "show", str(id)) == (
        f"id         {id}\n"
        "state      delayed\n"
        "because    retry: retryable: password=[redacted] was refused\n"
        "task       send_fax (version 1)\n"
        "tenant     acme\n"
        "queue      default\n"
        "priority   0\n"
        "attempt    1 of 5, 1 failed\n"
        "enqueued   2027-01-15 08:00:00 UTC (3.5s ago)\n"
        "due        2027-01-15 08:00:04 UTC (in 1s)\n"
        "timeout    1m\n"
        'metadata   {"password":"[redacted]"}\n'
        'arguments  {"password":"[redacted]","to":"+49 30"}\n'
        "attempts   1 failed on w1, started 2027-01-15 08:00:02 UTC (1.5s ago), took 1.5s\n"
        "             FaxError (retryable): password=[redacted] was refused\n"
    )


def test_who_created_a_job_is_shown(store: Shell) -> None:
    """S22: to people and to programs; null if it is unknown."""
    id = str(store.in_store(lambda world: world.enqueue(created_by="user:42")).id)
    assert "created by  user:42\n" in store.output_of("jobs", "show", id)
    (shown,) = store.run("jobs", "show", id, "--json").objects
    assert shown["created_by"] == "user:42"
    other = str(store.in_store(lambda world: world.enqueue()).id)
    assert "created by" not in store.output_of("jobs", "show", other)
    (shown,) = store.run("jobs", "show", other, "--json").objects
    assert shown["created_by"] is None


def test_secrets_are_shown_only_to_those_who_ask_for_them(store: Shell) -> None:
    """S6: an explicit permission, for people and for programs."""
    id = str(store.in_store(failed_fax))
    closed = store.output_of("jobs", "show", id, "--traceback") + store.output_of(
        "jobs", "show", id, "--json"
    )
    assert "hunter2" not in closed
    assert "abc123secret" not in closed
    opened = store.output_of("jobs", "show", id, "--reveal", "--traceback")
    assert '"password":"hunter2"' in opened
    assert "           FaxError: token=abc123secret at host\n" in opened
    (shown,) = store.run("jobs", "show", id, "--reveal", "--json").objects
    assert shown["arguments"] == {"to": "+49 30", "password": "hunter2"}
    assert shown["attempts"][0]["message"] == "password=hunter2 was refused"


def test_the_fields_that_a_task_calls_secret_are_redacted_too(store: Shell) -> None:
    """S6: a worker has published them, so that no application is needed to know them."""

    async def work(world: World) -> UUID:
        await world.register("w1", TaskRecord(name="noop", queue="default", sensitive=("shoe_size",)))
        return (await world.enqueue(payload=payload(shoe_size=44, hat=7))).id

    id = str(store.in_store(work))
    (shown,) = store.run("jobs", "show", id, "--json").objects
    assert shown["arguments"] == {"shoe_size": "[redacted]", "hat": 7}


def test_a_running_job_shows_who_runs_it(store: Shell) -> None:
    """Worker, lease and the live attempt."""

    async def work(world: World) -> UUID:
        await world.enqueue()
        return (await world.claim_one()).job.id

    shown = store.output_of("jobs", "show", str(store.in_store(work)))
    assert "worker       w1\nlease until  2027-01-15 08:00:12 UTC (in 12s)\n" in shown
    assert "attempts     1 running on w1, started 2027-01-15 08:00:00 UTC (now)\n" in shown


def test_a_result_is_shown_redacted(store: Shell) -> None:
    """S6: what a handler gave back is not more public than what it got."""

    async def work(world: World) -> UUID:
        await world.enqueue()
        claim = await world.claim_one()
        await world.settle(claim, Succeeded(encode_result({"pages": 3, "token": "abc"})))
        return claim.job.id

    assert 'result     {"pages":3,"token":"[redacted]"}\n' in store.output_of(
        "jobs", "show", str(store.in_store(work))
    )


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (b'{"v":1,"arguments":{"c":{"$enum":["Colour","RED"]}}}', {"c": "Colour.RED"}),
        (
            b'{"v":1,"arguments":{"c":{"$enum":["Colour","RED"]},"d":{"$date":"2026-01-02"}}}',
            {"c": "Colour.RED", "d": "2026-01-02"},
        ),
        (b'{"v":1,"arguments":{"d":{"$date":"2026-01-02"}}}', {"d": "2026-01-02"}),
        (b"\xff\x00", "cannot be read"),
        (b"[]", "cannot be read"),
    ],
)
def test_arguments_are_shown_as_well_as_they_can_be_read(store: Shell, stored: bytes, shown: object) -> None:
    """An Enum of the application is shown as written; rotten bytes do not end the command."""
    job = store.in_store(lambda world: world.enqueue(payload=stored))
    (found,) = store.run("jobs", "show", str(job.id), "--json").objects
    assert found["arguments"] == shown


def test_a_job_that_is_not_there_has_its_own_exit_code(store: Shell) -> None:
    """3, a sentence for people, an object for programs."""
    id = str(UUID(int=9))
    for command in (["jobs", "show"], ["explain"]):
        assert store.run(*command, id) == (3, "", f"Error: no job {id}\n")
    told = store.run("jobs", "show", id, "--json").told
    assert told == {"error": "JobNotFound", "message": f"no job {id}", "exit": 3}


def test_a_job_whose_result_was_dropped_says_why(store: Shell) -> None:
    """S34: it succeeded; the attempt has the reason."""

    async def dropped(world: World) -> UUID:
        await world.enqueue()
        why = Failure(ErrorClass.NON_RETRYABLE, "ResultDropped", "result takes 70,000 bytes")
        return (await world.run(Succeeded(None, why))).id

    id = str(store.in_store(dropped))
    shown = store.output_of("jobs", "show", id)
    assert "succeeded" in shown
    assert "no longer stored" in shown
    assert "ResultDropped (non_retryable): result takes 70,000 bytes" in shown
    (told,) = store.run("jobs", "show", id, "--json").objects
    assert (told["state"], told["result"]) == ("succeeded", None)
    assert told["attempts"][-1]["message"] == "result takes 70,000 bytes"


def test_a_query_selects_what_is_listed(store: Shell) -> None:
    """S78: its words may be one argument or several, and a filter must hold as well."""
    store.in_store(lambda world: world.enqueue(task="mail.send", tags=("vip",)))
    wanted = store.in_store(lambda world: world.enqueue(task="mail.sort"))
    for query in (
        ["task:mail.* -tag:vip"],
        ["task:mail.*", "(mail.so)"],
        ["--tenant", "acme", "task:mail.sort"],
    ):
        assert [job["id"] for job in store.run("jobs", "list", *query, "--json").objects] == [str(wanted.id)]
    assert store.run("jobs", "list", "--json", "--", "-tag:vip").objects[0]["id"] == str(wanted.id)


def test_a_wrong_query_shows_the_place(store: Shell) -> None:
    """The mark stands below the character, and nothing else is printed."""
    refused = store.run("jobs", "list", "state:ready tenent:acme")
    assert refused.code == 2
    assert "there is no field 'tenent'; did you mean tenant?" in refused.err
    lines = refused.err.rstrip().split("\n")
    assert lines[-2:] == ["  state:ready tenent:acme", "              ^"]
