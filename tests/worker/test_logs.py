"""A worker's log: records with tenant, job, attempt and correlation; and a handler's own lines."""

from __future__ import annotations

import json
import logging

import pytest

from fairlane import Context, Fail, Fairlane
from fairlane.app.task.attempt_log import MAX_BYTES, MAX_LINES, LogTail
from fairlane.runtime.logs import JsonFormatter
from tests.worker.world import World

ABOUT = {"tenant", "job", "queue", "task", "attempt", "worker", "correlation"}


async def test_every_record_about_an_attempt_carries_whose_it_is(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """At three in the morning, the line names tenant, job, attempt and correlation."""
    caplog.set_level("DEBUG", "fairlane.worker")

    @app.task(name="mixed", max_attempts=3)
    async def mixed(how: str) -> None:
        if how == "fails":
            raise ValueError("no\nline")
        if how == "dies":
            raise Fail(how)

    jobs = {
        how: await mixed.using(tenant="acme", correlation_id=f"order-{how}").aenqueue(how)
        for how in ("works", "fails", "dies")
    }
    worker = await world.burst(app)
    told = {one.__dict__["event"]: one for one in caplog.records if "job" in one.__dict__}
    assert set(told) == {"job_settled", "job_failed", "job_dead"}
    for record, how in zip(("job_settled", "job_failed", "job_dead"), jobs, strict=True):
        facts = told[record].__dict__
        assert set(facts) >= ABOUT
        assert (facts["tenant"], facts["job"]) == ("acme", str(jobs[how].id))
        assert (facts["attempt"], facts["correlation"], facts["task"]) == (1, f"order-{how}", "mixed")
        assert facts["worker"] == worker.id
    assert [told[event].levelno for event in told] == [logging.DEBUG, logging.WARNING, logging.ERROR]
    message = told["job_failed"].getMessage()
    assert message.endswith(" s, failure 1 of 3, retry: retryable: ValueError: no\nline")
    assert "attempt 1: now delayed for " in message
    assert "Traceback" in told["job_failed"].__dict__["traceback"]
    assert (
        told["job_dead"].getMessage().endswith("now dead, failure 1 of 3, failed: non_retryable: Fail: dies")
    )
    assert (told["job_failed"].__dict__["failures"], told["job_failed"].__dict__["max_attempts"]) == (1, 3)
    events = [one.__dict__["event"] for one in caplog.records]
    assert {"worker_started", "worker_left"} <= set(events)
    assert worker.failed == 2


async def test_a_success_costs_no_record_unless_somebody_wants_it(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """It is the hot path."""
    caplog.set_level("INFO", "fairlane")

    @app.task(name="noop")
    async def noop() -> None: ...

    await noop.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert "job_settled" not in [one.__dict__.get("event") for one in caplog.records]


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_what_a_handler_logs_is_kept_with_its_attempt(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """S62: stored at settle, also of an attempt that failed; and it goes to the application's logging."""
    caplog.set_level("DEBUG", "fairlane.task")

    def work(ctx: Context) -> None:
        ctx.log.debug("not kept")
        ctx.log.info("sending page %d", 1)
        try:
            raise KeyError("line 7")  # noqa: TRY301 (logged here, on purpose)
        except KeyError:
            ctx.log.exception("no line")
        raise ValueError

    if kind == "async":

        @app.task(name="talks")
        async def talks(ctx: Context) -> None:
            work(ctx)
    else:
        talks = app.task(name="talks")(work)

    job = await talks.using(tenant="acme").aenqueue()
    worker = await world.burst(app)
    kept = (await job.arefresh()).attempts[-1].log
    assert kept is not None
    lines = kept.splitlines()
    assert lines[0].endswith("INFO sending page 1")
    assert lines[1].endswith("ERROR no line")
    assert lines[-1] == "KeyError: 'line 7'"
    assert "not kept" not in kept
    records = [one for one in caplog.records if one.name == "fairlane.task"]
    assert [one.getMessage() for one in records] == ["not kept", "sending page 1", "no line"]
    assert {key: records[1].__dict__[key] for key in ("tenant", "job", "attempt")} == {
        "tenant": "acme",
        "job": str(job.id),
        "attempt": 1,
    }
    assert records[1].funcName == "work"
    assert records[1].__dict__["worker"] == worker.id


async def test_a_handler_that_logs_nothing_leaves_nothing(world: World, app: Fairlane) -> None:
    """Not even an empty text."""

    @app.task(name="quiet")
    async def quiet(ctx: Context) -> None: ...

    job = await quiet.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (await job.arefresh()).attempts[-1].log is None


def test_the_last_lines_are_kept_up_to_a_number_and_a_size() -> None:
    """200 lines or 16 KB, whichever is less; what is oldest goes."""
    tail = LogTail()
    for number in range(MAX_LINES + 50):
        tail.add(f"line {number}")
    kept = str(tail.text()).splitlines()
    assert (len(kept), kept[0], kept[-1]) == (200, "line 50", "line 249")
    for number in range(20):
        tail.add(f"{number:02}" + "ä" * 1_000)
    text = str(tail.text())
    assert len(text.encode()) <= MAX_BYTES
    assert text.splitlines()[-1].startswith("19")
    assert len(text.splitlines()) == 8
    tail.add("\U0001f600" * MAX_BYTES)
    assert 0 < len(str(tail.text()).encode()) <= MAX_BYTES


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_line_of_json_has_a_traceback_only_if_asked(is_asked: bool) -> None:
    """It is long; and it may hold secrets as any text."""
    record = logging.makeLogRecord({"msg": "failed", "traceback": "Traceback:\n  password=hunter2"})
    facts = json.loads(JsonFormatter(has_tracebacks=is_asked).format(record))
    assert facts.get("traceback") == ("Traceback:\n  password=[redacted]" if is_asked else None)


def test_a_line_of_json_has_the_facts_and_no_secret() -> None:
    """One object a line, whatever the record carries."""
    record = logging.LogRecord("fairlane.worker", logging.WARNING, "", 0, "two\nlines of %s", ("text",), None)
    record.event, record.tenant, record.api_key, record.odd = "job_failed", "acme", "s3cr3t-value", {1, 2}
    line = JsonFormatter().format(record)
    assert "\n" not in line
    facts = json.loads(line)
    assert (facts["level"], facts["event"], facts["tenant"]) == ("warning", "job_failed", "acme")
    assert facts["message"] == "two\nlines of text"
    assert "s3cr3t" not in line
