"""The log of a command that runs on its own, as people read it."""

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
