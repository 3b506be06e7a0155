"""`fairlane jobs trace`: a tree for people, one object a job for programs."""

from __future__ import annotations

from tests.cli.shell import Shell


def test_a_trace_is_a_tree_with_the_job_marked(store: Shell) -> None:
    """Children stand below their parent, with the time from the first enqueue."""
    root = store.in_store(lambda world: world.enqueue(task="import_file", correlation_id="c"))
    store.clock.advance(90)
    child = store.in_store(lambda world: world.enqueue(task="send", correlation_id="c", parent_id=root.id))
    assert store.output_of("jobs", "trace", str(child.id)) == (
        f"TASK         STATE  TENANT  QUEUE    ATTEMPT  ENQUEUED  RAN  ID\n"
        f"import_file  ready  acme    default  0/5      +0s       -    {root.id}\n"
        f"  → send     ready  acme    default  0/5      +1m 30s   -    {child.id}\n"
    )
    shown = store.run("jobs", "trace", str(child.id), "--json").objects
    assert [(one["id"], one["depth"], one["is_asked_for"]) for one in shown] == [
        (str(root.id), 0, False),
        (str(child.id), 1, True),
    ]


def test_the_time_that_attempts_took_is_shown(store: Shell) -> None:
    """All ended attempts of a job together."""
    job = store.in_store(lambda world: world.enqueue())
    claim = store.in_store(lambda world: world.claim_one())
    store.clock.advance(3)
    store.in_store(lambda world: world.settle(claim))
    assert "  3s  " in store.output_of("jobs", "trace", str(job.id))


def test_an_unknown_job_has_no_trace(store: Shell) -> None:
    """One clear error."""
    refused = store.run("jobs", "trace", "01a3185c-5000-7137-b2a7-4de438b4e652")
    assert refused.code == 3
    assert "no job 01a3185c-5000-7137-b2a7-4de438b4e652" in refused.err
