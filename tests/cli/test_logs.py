"""The log of a long-running command, as people read it."""

from __future__ import annotations

import logging

import pytest

from fairlane.cli.logs import PlainFormatter

FORM = "%(levelname)s %(about)s%(message)s"


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ({}, "INFO done"),
        (
            {"tenant": "acme", "job": "7", "attempt": 2, "correlation": "order-1"},
            "INFO tenant=acme job=7 attempt=2 correlation=order-1 done",
        ),
        (
            {"tenant": "acme", "job": "7", "attempt": 2, "correlation": "7"},
            "INFO tenant=acme job=7 attempt=2 done",
        ),
        ({"tenant": "\x1b[2J"}, "INFO tenant=\\x1b[2J done"),
    ],
)
def test_a_line_says_whose_attempt_it_is_about(extra: dict[str, object], line: str) -> None:
    """Tenant, job, attempt and a correlation of its own; and nothing of it moves the cursor."""
    record = logging.makeLogRecord({"name": "fairlane", "levelname": "INFO", "msg": "done", **extra})
    assert PlainFormatter(FORM).format(record) == line
    assert not hasattr(record, "about")


JOB = "0198f6f2-0000-7000-8000-000000000007"


def failed(**extra: object) -> logging.LogRecord:
    """Return the worker's log record of a failed attempt, whose message names the job."""
    facts = {"tenant": "acme", "job": JOB, "attempt": 2, "correlation": "order-1"}
    text = f"job {JOB} of mail, attempt 2: failed: no\tline\nand no\rpaper"
    return logging.makeLogRecord({"name": "fairlane", "levelname": "WARNING", "msg": text, **facts, **extra})


def test_a_record_is_one_line_and_names_its_job_once() -> None:
    """Whatever is in its message; a handler's own line has the job in front."""
    line = PlainFormatter(FORM).format(failed())
    assert line == (
        f"WARNING tenant=acme correlation=order-1 job {JOB} of mail, attempt 2: failed: "
        r"no    line\nand no\x0dpaper"
    )


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_traceback_of_an_attempt_is_shown_if_asked_for(is_asked: bool) -> None:
    """Below its line, and without secrets."""
    record = failed(traceback="Traceback:\n\tin mail\nValueError: password=hunter2\n")
    below = PlainFormatter(FORM, has_tracebacks=is_asked).format(record).split("\n")[1:]
    assert below == (["Traceback:", "    in mail", "ValueError: password=[redacted]"] if is_asked else [])


def test_a_traceback_that_was_logged_is_always_shown() -> None:
    """Who says `ctx.log.exception` wants it."""
    try:
        raise KeyError("line 7")  # noqa: TRY301 (caught here, on purpose)
    except KeyError as error:
        record = failed(exc_info=(KeyError, error, error.__traceback__))
    lines = PlainFormatter(FORM).format(record).split("\n")
    assert (lines[1], lines[-1]) == ("Traceback (most recent call last):", "KeyError: 'line 7'")


def test_an_attempt_that_was_logged_without_a_traceback_has_none() -> None:
    """A timeout has no frame of its own."""
    assert "\n" not in PlainFormatter(FORM, has_tracebacks=True).format(failed(traceback=None))
