"""Draw how one job passes between application, store, worker and handler, from the calls of a real run.

It runs one job on a SQLite file with a store that records each verb it is asked, and which file asked. So
the diagram shows no verb that does not exist and no order that did not happen. `make diagram` writes it into
docs/explanation/life-of-a-job.md; a test makes it anew and compares the two.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import fairlane
from fairlane import Fairlane
from fairlane.model.scope import Scope
from fairlane.store.contract import FACETS, Store
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.opening import open_store, register_scheme
from fairlane.worker.worker import WorkerRuntime
from tools.pages import ROOT

PAGE: Final = ROOT / "docs" / "explanation" / "life-of-a-job.md"
BEGIN: Final = "<!-- `make diagram` records a real job and writes what stands up to the next mark -->\n"
END: Final = "<!-- end of the diagram -->\n"

SHOWN: Final = ("jobs.enqueue", "claims.claim", "claims.renew", "claims.settle")
"""The verbs that move a job; of each, the first call that is about our job is drawn."""

_SOURCE: Final = Path(fairlane.__file__).parent


class Step(NamedTuple):
    """Something that happened: a verb that a file asked of the store, or what the handler did."""

    what: str
    caller: str = ""
    request: str = ""
    reply: str = ""
    state: str = ""


class Recorder:
    """What happens to one job, in order, whatever thread it happens in."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.job: UUID | None = None
        self.renewed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def note(self, real: Store, verb: str, caller: str, request: Any, reply: Any) -> None:
        """Record a verb, if it is about our job and not seen yet."""
        if verb == "jobs.enqueue":
            self.job = request.jobs[0].id
        if self.job is None or not _is_about(verb, self.job, request, reply):
            return
        if any(step.what == verb for step in self.steps):
            return
        found = await real.jobs.get(GetRequest(scope=Scope.all(), ids=(self.job,)))
        record = found[self.job]
        state = f"{record.state.value}, attempt {record.attempt}"
        self.steps.append(Step(verb, caller, type(request).__name__, type(reply).__name__, state))
        if verb == "claims.renew":
            self._loop.call_soon_threadsafe(self.renewed.set)


def _is_about(verb: str, job: UUID, request: Any, reply: Any) -> bool:
    match verb:
        case "claims.claim":
            return any(claim.job.id == job for claim in reply.claims)
        case "claims.renew":
            return any(renewal.id == job for renewal in request.renewals)
        case "claims.settle":
            return any(settlement.id == job for settlement in request.settlements)
        case _:
            return verb in SHOWN


class _RecordedFacet:
    def __init__(self, real: Store, facet: str, recorder: Recorder) -> None:
        self._real, self._facet, self._recorder = real, facet, recorder

    def __getattr__(self, verb: str) -> Any:
        method = getattr(getattr(self._real, self._facet), verb)
        name = f"{self._facet}.{verb}"
        if name not in SHOWN:
            return method

        async def recorded(request: Any) -> Any:
            caller = _calling_file()
            reply = await method(request)
            await self._recorder.note(self._real, name, caller, request, reply)
            return reply

        return recorded


class _RecordedStore:
    def __init__(self, real: Store, recorder: Recorder) -> None:
        for facet in FACETS:
            setattr(self, facet, _RecordedFacet(real, facet, recorder))


def _calling_file() -> str:
    """Return the nearest file of the package that awaits this verb, outside of the stores."""
    frame = sys._getframe(1)  # noqa: SLF001 (the only way to see who asks)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_SOURCE) and "store" not in path.relative_to(_SOURCE).parts:
            return path.relative_to(_SOURCE).as_posix()
        frame = cast("Any", frame.f_back)
    return ""


async def record() -> list[Step]:
    """Run one job on a real SQLite file, long enough for a renewal of its lease; return what happened."""
    recorder = Recorder()
    with TemporaryDirectory() as folder:
        register_scheme(
            "recorded+sqlite",
            lambda url, clock: cast(
                "Store", _RecordedStore(open_store(url.removeprefix("recorded+"), clock=clock), recorder)
            ),
        )
        app = Fairlane(
            f"recorded+sqlite:///{folder}/fairlane.db",
            config={"worker": {"lease": "3s", "renew_every": "1s"}},
        )

        @app.task(name="mail.send")
        async def send(to: str) -> str:
            recorder.steps.append(Step("starts"))
            await recorder.renewed.wait()
            recorder.steps.append(Step("returns"))
            return f"sent to {to}"

        async with app:
            await send.using(tenant="acme").aenqueue("ann@example.org")
            await WorkerRuntime(app, burst=True, duties=False).run()
    return recorder.steps


def diagram(steps: list[Step]) -> Iterator[str]:
    """Return the lines of a Mermaid diagram."""
    yield "sequenceDiagram"
    for letter, who in (("A", "application"), ("S", "store"), ("W", "worker"), ("H", "handler")):
        yield f"    participant {letter} as {who}"
    for step in steps:
        if step.what == "starts":
            yield "    W->>H: starts the handler"
        elif step.what == "returns":
            yield "    H-->>W: returns its result"
        else:
            who = "W" if step.caller.startswith("worker/") else "A"
            yield f"    {who}->>S: {step.what}({step.request}) in {step.caller}"
            yield f"    S-->>{who}: {step.reply}"
            yield f"    Note over S: {step.state}"


def with_diagram(page: str, steps: list[Step]) -> str:
    """Put the diagram between its marks; what stands around it stays."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        message = f"{PAGE.name} has no place for the diagram: {BEGIN}… {END}"
        raise ValueError(message)
    return head + "\n".join([BEGIN, "```mermaid", *diagram(steps), "```", "", END]) + tail


if __name__ == "__main__":
    PAGE.write_text(with_diagram(PAGE.read_text(encoding="utf-8"), asyncio.run(record())), encoding="utf-8")
