"""`fairlane cancel`, `run-now`, `workers` and `migrate`."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.instants import MINUTE
from fairlane.model.lifecycle.states import State
from tests.cli.shell import Shell
from tests.contract.world import SUCCEEDED, World

NOBODY = UUID(int=9)


def test_each_cancelled_job_has_its_answer_and_its_note_is_kept(store: Shell) -> None:
    """Waiting, running, finished, unknown; the worst of them is the exit code."""

    async def work(world: World) -> list[UUID]:
        await world.enqueue()
        ended = await world.run(SUCCEEDED)
        await world.enqueue()
        running = (await world.claim_one()).job
        return [(await world.enqueue()).id, running.id, ended.id]

    waiting, running, ended = store.in_store(work)
    ran = store.run("cancel", str(waiting), str(running), str(ended), str(NOBODY), "--note", "ordered twice")
    assert ran == (
        3,
        (
            "ID                                    ANSWER\n"
            f"{waiting}  cancelled\n{running}  requested\n{ended}  finished\n{NOBODY}  not found\n"
        ),
        "",
    )
    assert store.in_store(lambda world: world.get(waiting)).because == "asked: ordered twice"


@pytest.mark.parametrize(("state", "code"), [(State.READY, 0), (State.RUNNING, 0), (State.DEAD, 1)])
def test_a_cancel_that_comes_too_late_is_a_refusal(store: Shell, state: State, code: int) -> None:
    """Exit code 1, and an object a line for programs."""

    async def work(world: World) -> UUID:
        return (await world.bring_to(state)).job.id

    id = store.in_store(work)
    ran = store.run("cancel", str(id), "--json")
    answers = {State.READY: "cancelled", State.RUNNING: "requested", State.DEAD: "finished"}
    assert (ran.code, ran.objects) == (code, [{"id": str(id), "answer": answers[state]}])


def test_descendants_are_cancelled_only_with_a_yes(store: Shell) -> None:
    """Without a terminal nobody can be asked, so nothing happens."""
    root = store.in_store(lambda world: world.enqueue())
    child = store.in_store(lambda world: world.enqueue(parent_id=root.id))
    refused = store.run("cancel", str(root.id), "--descendants")
    assert (refused.code, refused.out) == (2, "")
    assert "this cannot be undone; confirm with --yes" in refused.err
    assert store.in_store(lambda world: world.get(root.id)).state is State.READY
    assert f"{child.id}  cancelled\n" in store.output_of("cancel", str(root.id), "--descendants", "--yes")


def test_delayed_jobs_are_made_ready_at_once(store: Shell) -> None:
    """Each id is answered; what was not delayed is a refusal, what is not there is worse."""
    delayed = store.in_store(lambda world: world.enqueue(delay=MINUTE)).id
    ready = store.in_store(lambda world: world.enqueue()).id
    assert store.output_of("run-now", str(delayed)).endswith(f"{delayed}  ready\n")
    assert store.in_store(lambda world: world.get(delayed)).state is State.READY
    assert store.run("run-now", str(ready)).code == 1
    ran = store.run("run-now", str(ready), str(NOBODY), "--json")
    assert (ran.code, [one["answer"] for one in ran.objects]) == (3, ["not delayed", "not found"])


def test_workers_are_listed_with_what_they_do(store: Shell) -> None:
    """The whole table; one of them has not been heard of for too long."""

    async def work(world: World) -> None:
        await world.register("old")
        world.advance(20)
        await world.register("new")
        await world.beat("new")

    store.in_store(work)
    assert store.output_of("workers") == (
        "WORKER  STATE   QUEUES   SLOTS  RUNNING  SETTLED  FAILED  MEMORY  CPU  VERSION  STARTED  HEARTBEAT\n"
        "new     busy    default     16        0        0       0  -       -    1        now      now\n"
        "old     silent  default     16        0        0       0  -       -    1        20s ago  20s ago\n"
    )
    assert [worker["id"] for worker in store.run("workers", "--live", "--json").objects] == ["new"]


def test_no_workers_is_said_with_what_to_do(store: Shell) -> None:
    """The commonest reason why nothing runs."""
    assert store.output_of("workers") == "No worker is known; start one with `fairlane worker`.\n"


def test_migrate_makes_a_store_and_says_when_there_is_nothing_to_do(shell: Shell) -> None:
    """Twice is fine."""
    first = shell.output_of("migrate")
    assert first.startswith("Created the store with schema ")
    assert "0001_begin" in first
    assert shell.file.exists()
    (again,) = shell.run("migrate", "--json").objects
    assert again == {"before": again["after"], "after": again["after"], "steps": []}
    assert shell.output_of("migrate") == f"Nothing to do: the schema is at version {again['after']}.\n"


def test_a_plan_says_what_is_missing_and_makes_nothing(shell: Shell) -> None:
    """For people before they migrate, and with --check for deployments that must not go on without."""
    planned = shell.output_of("migrate", "--plan")
    assert planned.startswith("Missing, from schema 0 to ")
    assert "0001_begin" in planned
    assert shell.run("migrate", "--check").code == 1
    assert not shell.file.exists()
    made = shell.run("migrate", "--json").objects[0]
    assert shell.run("migrate", "--check", "--json").objects == [
        {**made, "before": made["after"], "steps": []}
    ]
    assert (
        shell.output_of("migrate", "--plan") == f"Nothing to do: the schema is at version {made['after']}.\n"
    )
