"""Progress and logs of a handler on the command line, redacted."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import Progress
from tests.cli.shell import Shell
from tests.contract.world import HANDED_BACK, World

NOTE = "page 4, password=hunter2"


async def running(world: World) -> UUID:
    """Let a handler say how far it is."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.renew(claim, progress=Progress(0.4, NOTE))
    return claim.job.id


def test_progress_is_shown_with_its_note(store: Shell) -> None:
    """S62: to programs in a list as in full, to people both; its note redacted unless asked for in clear."""
    id = str(store.in_store(running))
    closed = {"fraction": 0.4, "note": "page 4, password=[redacted]"}
    (listed,) = store.run("jobs", "list", "--json").objects
    (shown,) = store.run("jobs", "show", id, "--json").objects
    assert (listed["progress"], shown["progress"]) == (closed, closed)
    assert "progress     40% page 4, password=[redacted]\n" in store.output_of("jobs", "show", id)
    assert "  running 40%  acme" in store.output_of("jobs", "list")
    (shown,) = store.run("jobs", "show", id, "--json", "--reveal").objects
    assert shown["progress"] == {"fraction": 0.4, "note": NOTE}


def test_a_job_that_said_nothing_has_no_progress(store: Shell) -> None:
    """Null for programs, nothing for people."""
    id = str(store.in_store(lambda world: world.enqueue()).id)
    assert store.run("jobs", "list", "--json").objects[0]["progress"] is None
    assert "progress" not in store.output_of("jobs", "show", id)


async def logged(world: World) -> UUID:
    """Let three attempts end, the second without a word, and a fourth begin."""
    job = await world.enqueue()
    for log in ("INFO one\nINFO token=abc123secret", None, "ERROR \x1b[2Jthree"):
        claim = await world.claim_one()
        await world.settle_reply(world.verdict(claim, HANDED_BACK, log=log))
    await world.claim_one()
    return job.id


def test_the_logs_of_a_job_are_shown_by_attempt(store: Shell) -> None:
    """S6, S62: redacted, and without what moves the cursor."""
    id = str(store.in_store(logged))
    assert store.output_of("jobs", "logs", id) == (
        "attempt 1, returned:\nINFO one\nINFO token=[redacted]\n"
        "attempt 2, returned:\n  nothing was logged\n"
        "attempt 3, returned:\nERROR \\x1b[2Jthree\n"
        "attempt 4, running:\n  log lines are stored when the attempt ends\n"
    )
    assert "abc123secret" in store.output_of("jobs", "logs", id, "--reveal")
    first, second, third, live = store.run("jobs", "logs", id, "--json").objects
    assert first == {"attempt": 1, "outcome": "returned", "lines": ["INFO one", "INFO token=[redacted]"]}
    assert (second["lines"], third["lines"], live["outcome"]) == ([], ["ERROR \x1b[2Jthree"], "running")
    (shown,) = store.run("jobs", "show", id, "--json").objects
    assert [one["log"] for one in shown["attempts"]][:2] == ["INFO one\nINFO token=[redacted]", None]


def test_one_attempt_may_be_asked_for(store: Shell) -> None:
    """An attempt that is no longer stored is a usage error; a job that has not started says so."""
    id = str(store.in_store(logged))
    assert store.output_of("jobs", "logs", id, "--attempt", "3").startswith("attempt 3, returned:\nERROR")
    ran = store.run("jobs", "logs", id, "--attempt", "9")
    assert (ran.code, ran.out) == (2, "")
    assert "attempt 9 is not stored; these are: 1, 2, 3, 4" in ran.err
    fresh = str(store.in_store(lambda world: world.enqueue()).id)
    assert store.output_of("jobs", "logs", fresh) == "The job has not started yet.\n"
    assert store.output_of("jobs", "logs", fresh, "--json") == ""
    assert store.run("jobs", "logs", str(UUID(int=1))).code == 3
