"""Workers over HTTP: what they say, and what they are told."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from fairlane import LaneStatus, SlotStatus, WorkerStatus
from fairlane.app.admin.worker_status import WorkerAnswer
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.mailbox import AnswerRequest, UnansweredRequest
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.app.world import World
from tests.web.api.callers import Callers

ID: Final = "worker-here-1"
STATUS: Final = WorkerStatus(
    id=ID,
    state="busy",
    slots=[
        SlotStatus(
            lane="main",
            tenant="acme",
            queue="default",
            task="mail.send",
            job="1",
            attempt=1,
            seconds=2.5,
            runs_in="loop",
        )
    ],
    lanes=[LaneStatus(name="main", slots=2, running=1, waiting=0, pending=0)],
    abandoned=0,
    loop_lag=0.0,
    memory=1_000,
    settled=3,
    failed=1,
)


async def register(world: World, id: str = ID) -> None:
    """Let a worker register."""
    record = WorkerRecord(id=id, host="here", pid=7, version="1", queues=("default",), slots=2)
    await world.oracle.registry.register(
        RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    )


def answering(world: World, callers: Callers, text: str = "") -> list[str]:
    """Let the worker answer the next question, while the asker waits; return what it was asked."""
    asked: list[str] = []

    async def answer() -> None:
        mailbox = world.oracle.mailbox
        (question,) = await mailbox.unanswered(UnansweredRequest(scope=Scope.all(), worker=ID))
        asked.append(question.kind)
        encoded = msgspec.json.encode(WorkerAnswer(status=STATUS, text=text))
        await mailbox.answer(AnswerRequest(scope=Scope.all(), id=question.id, worker=ID, text=encoded))

    world.drive(callers.app).meanwhile.append(answer)
    return asked


async def test_workers_are_found_and_one_is_shown(callers: Callers, world: World) -> None:
    """By id, or by its beginning."""
    await register(world)
    (found,) = (await callers.get("/workers"))["items"]
    assert (found["id"], found["state"], found["slots"], found["queues"]) == (ID, "starting", 2, ["default"])
    assert await callers.get("/workers/here") == found
    world.clock.advance(16)
    assert (await callers.get("/workers"))["items"] == []
    (silent,) = (await callers.get("/workers", params={"live": False}))["items"]
    assert (silent["id"], silent["state"]) == (ID, "silent")
    assert (await callers.ask("GET", "/workers/elsewhere")).status_code == 404


async def test_a_worker_says_what_it_does(callers: Callers, world: World) -> None:
    """Its slots, its lanes, its memory."""
    await register(world)
    asked = answering(world, callers)
    status = await callers.get(f"/workers/{ID}/status")
    assert asked == ["status"]
    assert status == msgspec.to_builtins(STATUS)


@pytest.mark.parametrize(("memory", "kind"), [(False, "dump"), (True, "memory")])
async def test_a_worker_shows_its_stacks(callers: Callers, world: World, *, memory: bool, kind: str) -> None:
    """As text, for people."""
    await register(world)
    asked = answering(world, callers, "Thread main")
    response = await callers.ask("GET", f"/workers/{ID}/dump", params={"memory": memory})
    assert (response.status_code, response.text, asked) == (200, "Thread main", [kind])
    assert response.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("verb", ["pause", "resume", "stop"])
async def test_a_worker_is_told_what_to_do(callers: Callers, world: World, verb: str) -> None:
    """It answers, and the order is in the audit with its note."""
    await register(world)
    asked = answering(world, callers)
    assert (await callers.post(f"/workers/{ID}/{verb}", {"note": "deploy"}))["id"] == ID
    assert asked == [verb]
    (entry,) = (await callers.get("/audit"))["items"]
    assert (entry["kind"], entry["subject"], entry["note"]) == (f"workers.{verb}", f"worker {ID}", "deploy")


async def test_a_worker_that_does_not_answer_is_a_timeout(callers: Callers, world: World) -> None:
    """The answer says how long was waited and what may be the cause."""
    await register(world)
    world.drive(callers.app)
    response = await callers.ask("GET", f"/workers/{ID}/status", params={"at_most": 2})
    assert (response.status_code, response.json()["code"]) == (504, "worker_silent")
    assert "within 2 s" in response.json()["detail"]
