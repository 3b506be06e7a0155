"""Send requests that the API's own description allows and forbids, and hold every answer to it.

The application has jobs in every state on SQLite, of two tenants, and ids of some of them are among the
values. Requests change and delete things as they may; what they leave is what the next ones meet.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairlane import Context, ErrorClass, Fail, Fairlane
from fairlane.model.access import Principal, Role
from fairlane.testing import Trial
from fairlane.web.application import asgi
from fairlane.web.locations import API
from tests.web.callers import NO_RATE

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

_ENDLESS: Final = "text/event-stream"
"""An answer without an end is tested elsewhere."""


@dataclass
class FuzzReport:
    """How many requests were answered how."""

    statuses: Counter[int] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.statuses.total()


def application() -> Fairlane:
    """Return an application whose tasks succeed, fail, fail for good, and take all kinds of arguments."""
    app = Fairlane(name="fuzzed", config=NO_RATE)

    @app.task(name="mail.send", sensitive=("text",))
    async def send(ctx: Context, text: str = "", other: Any = None) -> dict[str, Any]:
        ctx.log.info("sending %s", text)
        return {"text": text, "token": "hunter2", "other": other}

    @app.task(name="mail.sort", max_attempts=2, queue="bulk")
    async def sort(n: int) -> None:
        message = f"cannot sort {n}"
        raise ValueError(message)

    @app.task(name="mail.drop")
    async def drop() -> None:
        raise Fail("dropped", error_class=ErrorClass.NON_RETRYABLE)

    return app


async def fill(app: Fairlane, trial: Trial, count: int) -> list[str]:
    """Store jobs in every state but running, of two tenants; return their ids."""
    ids: list[str] = []

    async def enqueue(number: int) -> None:
        options: dict[str, Any] = {"tenant": ("acme", "globex")[number % 2], "tags": [f"n{number % 3}"]}
        for task, arguments in (
            ("mail.send", {"text": f"to {number}", "other": [1, {"password": "hunter2"}]}),
            ("mail.sort", {"n": number}),
            ("mail.drop", {}),
        ):
            job = await app.aenqueue_by_name(task, arguments, **options, correlation_id=f"c{number % 5}")
            ids.append(str(job.id))

    for number in range(count):
        await enqueue(number)
    await trial.arun()
    for number in range(count):
        await enqueue(number)
    for id in ids[-count:]:
        await app.jobs.acancel(id)
    return ids


class Fuzzer:
    """One application on a new SQLite file, and an event loop in which it answers."""

    def __init__(self, runner: asyncio.Runner, app: Fairlane, ids: list[str]) -> None:
        """Describe the API."""
        self._runner = runner
        self._ids = ids
        self.report = FuzzReport()
        transport = httpx2.ASGITransport(app=asgi(app, authenticate=_by_role))
        self._client = httpx2.AsyncClient(transport=transport, base_url="http://localhost")
        response = runner.run(self._client.get(f"{API}/openapi.json", headers=_headers("admin")))
        self.schema = schemathesis.openapi.from_dict(response.json())
        self.schema.validate()

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._client.aclose())

    def operations(self) -> list[Any]:
        """Return what can be asked for."""
        every: Any = self.schema.get_all_operations()
        found = [one.ok() for one in every]
        return [one for one in found if _ENDLESS not in str(one.definition.raw["responses"])]

    def fuzz(self, requests: int, number: int, part: slice = slice(None)) -> None:
        """Send at least so many requests, as this seed says, of every endpoint of a part as many."""
        operations = self.operations()[part]
        each = -(-requests // (2 * len(operations)))
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                self._fuzz_one(operation, mode, each, number)

    def _fuzz_one(self, operation: Any, mode: GenerationMode, count: int, number: int) -> None:
        known = st.sampled_from([*self._ids, ""])
        roles = st.sampled_from(["admin", "admin", "admin", "manager", "acme", "acme", "viewer"])

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), known, roles)
        def one(case: Any, id: str, role: str) -> None:
            if id and "id" in (case.path_parameters or {}):
                case.path_parameters["id"] = id
            self._ask(case, role)

        try:
            one()
        except schemathesis.errors.InvalidSchema:  # there is nothing that it forbids
            assert mode is GenerationMode.NEGATIVE

    def _ask(self, case: Any, role: str) -> None:
        sent = case.as_transport_kwargs(base_url=f"http://localhost{API}")
        sent.pop("cookies", None)
        headers = {**sent.pop("headers"), **_headers(role)}
        if "data" in sent:
            sent["content"] = sent.pop("data")
        response = self._runner.run(self._client.request(**sent, headers=headers))
        self.report.statuses[response.status_code] += 1
        self.report.endpoints[case.operation.definition.raw["operationId"]] += 1
        case.validate_response(response, checks=CHECKS)


@contextmanager
def fuzzer(jobs: int) -> Iterator[Fuzzer]:
    """Make an application with so many jobs of each kind, and close everything afterwards."""
    with asyncio.Runner() as runner:
        app = application()
        trial = Trial(app)
        runner.run(trial.__aenter__())
        try:
            made = Fuzzer(runner, app, runner.run(fill(app, trial, jobs)))
            try:
                yield made
            finally:
                made.close()
        finally:
            runner.run(trial.__aexit__(None, None, None))


def new_seed() -> int:
    """Return a seed that nobody has chosen."""
    return random.SystemRandom().getrandbits(32)


def _headers(role: str) -> dict[str, str]:
    return {"x-test-role": role, "sec-fetch-site": "same-origin"}


async def _by_role(request: Any) -> Principal | None:
    """Believe the header; `acme` is a manager of that tenant."""
    role = request.headers.get("x-test-role")
    if role == "acme":
        return Principal(name="ann", role=Role.MANAGER, tenant="acme")
    return None if role is None else Principal(name="ann", role=Role(role))
