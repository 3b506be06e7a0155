"""A secret that somebody put into a job is nowhere in clear: no page, answer, export, journal or log (S6)."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import msgspec
import pytest
from msgspec.structs import replace

from fairlane import Breaker, Budget, Fairlane, Job
from fairlane.app.task.rules import declared_rules
from fairlane.model.access import Role
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.job import Progress
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import AttemptResult, Failed, Succeeded, decide_settlement
from fairlane.model.schedule.records import NewSlot
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, Renewal, RenewRequest, SettleRequest
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, TaskRecord, WorkerRecord
from fairlane.store.contract.schedules import ScheduleChange, SchedulesFindRequest, SchedulesWriteRequest
from fairlane.store.opening import register_scheme
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.addresses import addresses, readings
from tests.web.callers import NO_RATE, ann, web_of
from tests.web.journals import number_entries
from tests.web.pages.scene import Lent

WORKER: Final = "worker-1"
NAMES: Final = ("password", "token", "secret", "key", "api_key", "authorization")


class Canaries:
    """Secrets that are known by their number, so that whoever finds one knows where it came from."""

    def __init__(self) -> None:
        """Begin with none."""
        self.texts: dict[str, str] = {}

    def new(self, where: str) -> str:
        """Return a secret for a place."""
        text = f"canary{len(self.texts):03}x9f3"
        self.texts[text] = where
        return text

    def text(self, where: str) -> str:
        """Return a text that quotes secrets, as errors and logs do."""
        url = f"postgresql://app:{self.new(f'{where}: URL')}@db/shop"
        header = f"Authorization: Bearer {self.new(f'{where}: header')}"
        return f"refused: password={self.new(f'{where}: password')} at {url}; {header}"

    def in_clear(self, text: str) -> list[str]:
        """Return where the secrets come from that a text shows."""
        return [where for canary, where in self.texts.items() if canary in text]


class SecretStore:
    """An application whose jobs carry secrets, and say them wherever they can."""

    def __init__(self, app: Fairlane, store: Store) -> None:
        """Declare a task."""
        self.app = app
        self.store = store
        self.canaries = Canaries()
        self._task = app.task(name="mail.send", queue="mail", sensitive=["pin"])(_take)

    async def fill(self) -> None:
        """Give every state a job, a dead letter notes, and holds their reasons."""
        lane = LaneRecord("default", 4, ("mail",))
        task = TaskRecord(name="mail.send", queue="mail", sensitive=("pin",))
        record = WorkerRecord(
            id=WORKER, host="h", pid=1, version="1", queues=("mail",), slots=4, lanes=(lane,), tasks=(task,)
        )
        await self.store.registry.register(
            RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
        )
        say = self.canaries.text
        result = encode_result({"token": self.canaries.new("result"), "said": say("result")})
        for ending in (Succeeded(result), self._failed("retried"), self._failed("died"), None):
            await self._run(ending)
        await self._enqueue()
        await (await self._enqueue()).acancel(say("reason of a cancellation"))
        (letter,) = (await self.app.dead.afind()).items
        await self.app.dead.anote(letter.id, say("note"))
        await self.app.dead.aacknowledge(letter.id, note=say("note of an acknowledgement"))
        app = self.app
        for holds, name in ((app.tenants, "acme"), (app.queues, "mail"), (app.tasks, "mail.send")):
            await holds.apause(name, reason=say(f"reason of a pause of {name}"))
            await holds.aclose(name, reason=say(f"reason of a close of {name}"))
        await self.app.queues.aset("mail", max_waiting=9, note=say("note of a limit"))
        await self.app.gates.aset("smtp", limit=3, note=say("note of a gate"))
        await self.app.breakers.aopen("fax", reason=say("reason of a breaker"))
        await self.app.budgets.aset("ai", ceiling=9, note=say("note of a budget"))
        await self._schedule()
        user = {"password": self.canaries.new("password of a user"), "role": Role.VIEWER}
        await self.app.users.aadd("bob", note=say("note of a user"), **user)
        token = await self.app.tokens.acreate("ci", role=Role.VIEWER)
        self.canaries.texts[token.secret] = "a token's secret"
        await number_entries(app, self.store)

    async def _schedule(self) -> None:
        """Make a schedule with secrets wherever somebody may write one."""
        say, schedules = self.canaries.text, self.app.schedules
        await schedules.aadd(
            "nightly",
            "mail.send",
            "@daily",
            tenant="acme",
            arguments={
                "nested": {"password": self.canaries.new("argument of a schedule")},
                "fields": {},
                "pin": self.canaries.new("declared argument of a schedule"),
            },
            tags=[f"password={self.canaries.new('tag of a schedule')}"],
            metadata={"token": self.canaries.new("metadata of a schedule")},
            note=say("note of a schedule"),
        )
        await schedules.aedit("nightly", priority=1, note=say("note of an edit"))
        await schedules.apause("nightly", reason=say("reason of a pause of a schedule"))
        find = SchedulesFindRequest(scope=Scope.all(), names=("nightly",))
        reply = await self.store.schedules.find(find)
        record = replace(reply.rows[0].record, problem=say("problem of a schedule"))
        slot = NewSlot(at=reply.now, tenant="acme", state="failed", because=say("why a slot has failed"))
        change = ScheduleChange(name="nightly", revision=reply.rows[0].revision, record=record, slots=(slot,))
        await self.store.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=(change,)))

    async def _enqueue(self) -> Job[Any]:
        fields = {name: self.canaries.new(f"argument {name}") for name in NAMES}
        said = self.canaries.text("argument")
        nested = {"db": {"password": self.canaries.new("nested argument")}, "said": said}
        using = self._task.using(
            tenant="acme",
            tags=[f"password={self.canaries.new('tag')}"],
            metadata={"token": self.canaries.new("metadata"), "said": self.canaries.text("metadata")},
        )
        return await using.aenqueue(nested, fields, self.canaries.new("an argument that the task declares"))

    async def _run(self, ending: AttemptResult | None) -> None:
        """Let the worker run a new job to an end; None leaves it running."""
        await self._enqueue()
        request = ClaimRequest(
            scope=Scope.all(),
            worker=WORKER,
            lease=60 * SECOND,
            queue_requests=(QueueRequest("mail", 1),),
            total=1,
        )
        (claim,) = (await self.store.claims.claim(request)).claims
        renewal = Renewal(claim.job.id, claim.fence, Progress(0.5, f"token={self.canaries.new('progress')}"))
        await self.store.claims.renew(
            RenewRequest(scope=Scope.all(), worker=WORKER, lease=60 * SECOND, renewals=(renewal,))
        )
        if ending is None:
            return
        settlement = decide_settlement(claim, ending, draw=0.5)
        settlement = msgspec.structs.replace(settlement, log=self.canaries.text("log"))
        await self.store.claims.settle(
            SettleRequest(scope=Scope.all(), worker=WORKER, settlements=(settlement,))
        )

    def _failed(self, what: str) -> Failed:
        kind = ErrorClass.RETRYABLE if what == "retried" else ErrorClass.NON_RETRYABLE
        say = self.canaries.text
        message, traceback = say(f"message of what {what}"), say(f"traceback of what {what}")
        return Failed(Failure(kind, "RefusedError", message, traceback, what))


def _take(nested: dict[str, Any], fields: dict[str, str], pin: str) -> None:
    """Stand for a handler: attempts are ended by the store's filler."""


@asynccontextmanager
async def secret_store(name: str) -> AsyncIterator[SecretStore]:
    """Open an empty store and fill it."""
    async with STORES[name](DrivenClock()) as store:
        register_scheme("secrets", lambda *_: cast("Store", Lent(store)))
        guards: dict[str, Any] = {"breakers": [Breaker("fax")], "budgets": [Budget("ai", 500, "USD")]}
        app = Fairlane("secrets://here", config=NO_RATE, **guards)
        await store.policies.put(PutRequest(scope=Scope.all(), rules=declared_rules(app)))
        secrets = SecretStore(app, store)
        try:
            await secrets.fill()
            yield secrets
        finally:
            await app.aclose()


@pytest.mark.parametrize("name", sorted(STORES))
async def test_no_secret_is_anywhere_in_clear(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """An administrator sees everything that there is, and no secret of it."""
    found: dict[str, list[str]] = {}
    with caplog.at_level("DEBUG", logger="fairlane"):
        async with secret_store(name) as secrets:
            canaries = secrets.canaries
            async with web_of(secrets.app, ann()) as web:
                for path in [*await addresses(secrets.app), *await readings(secrets.app)]:
                    answer = await web.get(path)
                    assert answer.status_code == 200, (path, answer.text)
                    found[path] = canaries.in_clear(answer.text)
                for export in (secrets.app.dead, secrets.app.audit):
                    written = io.StringIO()
                    assert await export.aexport(written)
                    found[type(export).__name__] = canaries.in_clear(written.getvalue())
    found["log"] = canaries.in_clear(caplog.text)
    assert {path: where for path, where in found.items() if where} == {}
    assert len(canaries.texts) > 50
    assert len(found) > 30
