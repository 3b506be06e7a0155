"""`fairlane jobs edit`, `condemn`, `fail`, `take-back`, `again`, `stuck`, `failures` and `tasks counts`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from fairlane.app.task.record import task_record_of
from fairlane.cli.application import load
from fairlane.cli.render.times import timestamp
from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import decode_arguments
from tests.cli.shell import Shell
from tests.contract.world import World, ruined

NOBODY = UUID(int=9)
SHOP = """
from datetime import date

from fairlane import Fairlane

app = Fairlane({url!r}, config={{}})

@app.task(name="bill")
def bill(order: int, day: date | None = None, code: str = "") -> None: ...
"""


@pytest.fixture
def shop(store: Shell) -> Shell:
    """A store in which a worker has introduced itself."""
    store.write("shop.py", SHOP.format(url=store.url))
    app = load("shop:app")
    tasks = [task_record_of(task, app.settings) for task in app.registry]
    store.in_store(lambda world: world.register("w1", *tasks))
    return store


def enqueued(shop: Shell, *options: str) -> JobRecord:
    """Enqueue a job by the command line, and return it."""
    assert shop.run("enqueue", "bill", "order=7", "code=17", "--tenant", "acme", *options).code == 0
    return newest(shop)


def newest(shop: Shell) -> JobRecord:
    """Return the job that was enqueued last."""
    return shop.in_store(lambda world: world.find_all())[0]


def arguments(job: JobRecord) -> dict[str, Any]:
    """Read a job's arguments."""
    return decode_arguments(job.payload, is_showing=True)


def test_a_waiting_job_is_edited_and_shown(shop: Shell) -> None:
    """Only what was given changes; values are read as in `enqueue`, without the application."""
    job = enqueued(shop, "--delay", "10m", "--expires-in", "1h", "--tag", "old")
    edited = shop.run(
        *("jobs", "edit", str(job.id), "--priority", "9", "--delay", "2m", "--tag", "red", "--tag", "blue"),
        *("--arg", "day=2026-07-01", "--arg", "code=18", "--note", "typed wrong", "--json"),
    )
    (shown,) = edited.objects
    after = newest(shop)
    assert (edited.code, shown["id"], shown["priority"]) == (0, str(job.id), 9)
    assert (shown["tags"], after.tags) == (["blue", "red"], ("red", "blue"))
    assert after.run_at == shop.clock.now() + 2 * MINUTE
    assert after.expires_at == job.expires_at
    assert {name: str(value) for name, value in arguments(after).items()} == {
        "order": "7",
        "day": "2026-07-01",
        "code": "18",
    }


def test_an_edit_reads_in_the_audit_as_people_say_it(shop: Shell) -> None:
    """A time as a time; of arguments only that they are others, as the audit has none."""
    job = enqueued(shop, "--delay", "10m")
    shop.run("jobs", "edit", str(job.id), "--delay", "2m", "--arg", "code=18", "--note", "typed wrong")
    was, now = timestamp(job.run_at), timestamp(shop.clock.now() + 2 * MINUTE)
    (row,) = shop.output_of("audit", "list", "--kind", "jobs.edit").splitlines()[1:]
    assert f"arguments: changed, run_at: {was} → {now}  typed wrong" in row


def test_an_expiry_is_moved_and_removed(shop: Shell) -> None:
    """Relative to now, or not at all any more."""
    job = enqueued(shop)
    assert shop.run("jobs", "edit", str(job.id), "--expires-in", "90s").code == 0
    assert newest(shop).expires_at == shop.clock.now() + 90 * SECOND
    out = shop.output_of("jobs", "edit", str(job.id), "--never-expires")
    assert newest(shop).expires_at is None
    assert out.splitlines()[1].startswith(f"{job.id}  ready  acme")


def test_a_whole_object_of_arguments_is_taken_as_json(shop: Shell) -> None:
    """Those that it does not name stay."""
    job = enqueued(shop)
    assert shop.run("jobs", "edit", str(job.id), "--args", '{"order": 8}').code == 0
    assert arguments(newest(shop))["order"] == 8
    assert arguments(newest(shop))["code"] == "17"


def test_every_bad_value_is_reported_in_one_error(shop: Shell) -> None:
    """Exit code 1; for programs the problems are a list."""
    job = enqueued(shop)
    refused = shop.run(
        *("jobs", "edit", str(job.id), "--priority", "500", "--arg", "order=seven", "--arg", "x=1", "--json")
    )
    assert refused.code == 1
    assert [one["field"] for one in refused.told["problems"]] == [
        "priority",
        "arguments.order",
        "arguments.x",
    ]
    assert newest(shop) == job


def test_arguments_of_an_unknown_task_are_refused_and_the_rest_can_change(store: Shell) -> None:
    """Exit code 3, as for a task that is not there."""
    job = store.in_store(lambda world: world.enqueue())
    refused = store.run("jobs", "edit", str(job.id), "--arg", "order=8")
    assert refused.code == 3
    assert "no worker has published a task 'noop'" in refused.err
    assert store.run("jobs", "edit", str(job.id), "--priority", "4").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "nothing to change"),
        (("--arg", "order=1", "--args", "{}"), "only one of --arg and --args"),
        (("--never-expires", "--expires-in", "5"), "only one of --expires-at, --expires-in"),
        (("--arg", "order"), "'order' is not KEY=VALUE"),
        (("--args", "[1]"), "--args is not a JSON object"),
        (("--priority", "high"), "--priority"),
        (("--note", "x" * 2_001, "--priority", "1"), "--note"),
    ],
)
def test_a_wrong_command_line_changes_nothing(shop: Shell, options: tuple[str, ...], words: str) -> None:
    """Exit code 2."""
    job = enqueued(shop)
    refused = shop.run("jobs", "edit", str(job.id), *options)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err
    assert newest(shop) == job


def test_a_job_that_does_not_wait_is_refused(store: Shell) -> None:
    """Exit code 1 with what to do; an unknown one is 3."""
    claim = store.in_store(lambda world: world.bring_to(State.RUNNING))
    refused = store.run("jobs", "edit", str(claim.job.id), "--priority", "1")
    assert refused.code == 1
    assert "is running: only a waiting job can be changed; cancel it, or wait" in refused.err
    assert store.run("jobs", "edit", str(NOBODY), "--priority", "1").code == 3


def test_each_condemned_job_has_its_answer(store: Shell) -> None:
    """Waiting, running, unknown; the worst of them is the exit code."""
    running = store.in_store(lambda world: world.bring_to(State.RUNNING)).job.id
    waiting = store.in_store(lambda world: world.enqueue()).id
    ran = store.run("jobs", "condemn", str(waiting), str(running), str(NOBODY), "--reason", "wrong list")
    assert ran == (
        3,
        (
            "ID                                    ANSWER\n"
            f"{waiting}  dead\n{running}  not waiting\n{NOBODY}  not found\n"
        ),
        "",
    )
    assert store.in_store(lambda world: world.get(waiting)).because == "condemned: wrong list"
    late = store.run("jobs", "condemn", str(running), "--reason", "x", "--json")
    assert (late.code, late.objects) == (1, [{"id": str(running), "answer": "not waiting"}])
    assert store.run("jobs", "condemn", str(waiting)).code == 2


def test_a_running_job_fails_by_hand(store: Shell) -> None:
    """To be tried again, or dead; the new state is printed, and the reason is in its attempt."""
    ids = [store.in_store(lambda world: world.bring_to(State.RUNNING)).job.id for _ in range(2)]
    assert store.output_of("jobs", "fail", str(ids[0]), "--retry", "--reason", "bank closed") == (
        f"{ids[0]} delayed\n"
    )
    dead = store.run("jobs", "fail", str(ids[1]), "--dead", "--reason", "no bank", "--json")
    assert dead.objects == [{"id": str(ids[1]), "state": "dead"}]
    shown = store.output_of("jobs", "show", str(ids[0]))
    assert "FailedByHand (retryable): bank closed" in shown
    assert store.in_store(lambda world: world.get(ids[1])).because == "failed: no bank"


def test_a_running_job_is_taken_back(store: Shell) -> None:
    """Ready at once; a second time it does not run."""
    job = store.in_store(lambda world: world.bring_to(State.RUNNING)).job
    taken = store.run("jobs", "take-back", str(job.id), "--reason", "wrong host", "--json")
    assert taken.objects == [{"id": str(job.id), "state": "ready"}]
    late = store.run("jobs", "take-back", str(job.id), "--reason", "wrong host")
    assert (late.code, late.out) == (1, "")
    assert "is ready: only a running job can be taken back" in late.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fail", "--reason", "x"), "give one of --retry and --dead"),
        (("fail", "--retry", "--dead", "--reason", "x"), "give one of --retry and --dead"),
        (("fail", "--retry"), "--reason"),
        (("fail", "--retry", "--reason", " "), "it is empty"),
        (("take-back",), "--reason"),
    ],
)
def test_a_revocation_without_its_options_changes_nothing(
    store: Shell, arguments: tuple[str, ...], words: str
) -> None:
    """Exit code 2; an unknown job is 3."""
    job = store.in_store(lambda world: world.bring_to(State.RUNNING)).job
    verb, *options = arguments
    refused = store.run("jobs", verb, str(job.id), *options)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err
    assert store.in_store(lambda world: world.get(job.id)).state is State.RUNNING
    assert store.run("jobs", "fail", str(NOBODY), "--dead", "--reason", "x").code == 3
    assert store.run("jobs", "take-back", str(NOBODY), "--reason", "x").code == 3


def test_a_finished_job_is_run_again(shop: Shell) -> None:
    """The new id is printed, and its parent is the old one; a dead one is refused."""
    job = enqueued(shop, "--created-by", "ann")
    shop.run("cancel", str(job.id))
    shop.clock.advance(1)
    printed = shop.output_of("jobs", "again", str(job.id), "--note", "they lost it")
    copy = newest(shop)
    assert printed == f"{copy.id} created\n"
    assert (copy.parent_id, copy.payload, copy.created_by) == (job.id, job.payload, "ann")
    shop.clock.advance(1)
    (shown,) = shop.run("jobs", "again", str(job.id), "--created-by", "ben", "--json").objects
    assert (shown["created_by"], shown["parent_id"]) == ("ben", str(job.id))
    shop.run("jobs", "condemn", str(copy.id), "--reason", "x")
    refused = shop.run("jobs", "again", str(copy.id))
    assert (refused.code, "app.dead.reprocess(id)" in refused.err) == (1, True)


def test_what_failed_lately_is_shown_by_task(store: Shell) -> None:
    """The whole table; a secret in an error is redacted, and a cut says so."""

    async def work(world: World) -> None:
        for message in ("password=hunter2", "password=hunter2", "no line"):
            await world.enqueue(task="mail")
            await world.run(ruined(message=message))
        world.advance(120)

    assert store.output_of("failures") == "Nothing has failed since then.\n"
    store.in_store(work)
    assert store.output_of("failures", "--since", "1h") == (
        "TASK  FAILURES  JOBS  DEAD  NEWEST  COMMONEST ERROR\n"
        "mail         3     3     3  2m ago  ValueError: password=[redacted]\n"
    )
    cut = store.run("failures", "--most", "1", "--since", "1h", "--json")
    assert [one["failures"] for one in cut.objects] == [1]
    assert "1 job(s) were read, and there are more: raise --most." in cut.err
    assert store.run("failures", "--since", "yesterday").code == 2


def test_jobs_are_counted_by_task_and_long_running_ones_listed(shop: Shell) -> None:
    """Two commands, both for programs as well."""
    job = enqueued(shop)
    assert shop.output_of("tasks", "counts") == (
        "TASK  DELAYED  READY  RUNNING  SUCCEEDED  DEAD  CANCELLED\n"
        "bill        0      1        0          0     0          0\n"
    )
    shop.in_store(lambda world: world.claim_one())
    (counted,) = shop.run("tasks", "counts", "--json").objects
    assert (counted["task"], counted["running"], counted["is_complete"]) == ("bill", 1, True)
    assert shop.output_of("jobs", "stuck") == "No job has been running for so long.\n"
    shop.clock.advance(3 * 3600)
    assert shop.output_of("jobs", "stuck", "--age", "1h") == (
        "ID                                    RUNNING FOR  TENANT  QUEUE    TASK  ATTEMPT  WORKER\n"
        f"{job.id}  3h           acme    default  bill  1/5      w1\n"
    )
    (shown,) = shop.run("jobs", "stuck", "--json").objects
    assert (shown["id"], shown["worker"]) == (str(job.id), "w1")
    assert shop.run("jobs", "stuck", "--age", "long").code == 2


def test_retries_show_how_the_jobs_of_each_task_got_on(store: Shell) -> None:
    """Finished ones; programs get the rate as a number."""

    async def work(world: World) -> None:
        await world.bring_to(State.SUCCEEDED)
        await world.bring_to(State.DEAD)

    store.in_store(work)
    head, row = store.output_of("tasks", "retries").splitlines()
    assert head.split()[:4] == ["TASK", "JOBS", "SUCCEEDED", "AFTER"]
    assert row.split() == ["noop", "2", "50%", "0", "1", "1.0", "ValueError:", "hopeless"]
    (shown,) = store.run("--json", "tasks", "retries", "--since", "1h", "--task", "noop").objects
    assert (shown["success_rate"], shown["errors"]) == (0.5, {"ValueError: hopeless": 1})
    assert "there are more: raise --most" in store.run("tasks", "retries", "--most", "1").err
    assert store.output_of("tasks", "retries", "--task", "nobody") == "No job has finished since then.\n"
