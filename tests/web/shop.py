"""An application with something of everything that pages show: `python -m tests.web.shop` serves it.

Its callers name themselves in a header or a cookie, which is for tests and for looking at pages alone.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import uvicorn
from starlette.requests import Request

from fairlane import Backoff, Breaker, Budget, Call, Cancel, Context, Fairlane, Gate, Queue, Rate
from fairlane.model.access import Principal, Role
from fairlane.model.instants import DAY, SECOND, Instant, to_instant
from fairlane.model.schedule.records import FanOut, NewSlot, SlotState
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.schedules import (
    EndSlotsRequest,
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesListRequest,
    SchedulesWriteRequest,
    SlotEnd,
)
from fairlane.store.opening import open_store
from fairlane.web.application import asgi
from tests.web.callers import NO_RATE

CALLER: Final = "x-caller"
"""`role` or `role:tenant`, as a header or a cookie."""

app = Fairlane(
    os.environ.get("FAIRLANE_URL", "sqlite:////tmp/fairlane-shop.db"),
    name="shop",
    queues=[Queue("mail"), Queue("bulk"), Queue("reports", rate=Rate(30, "minute"))],
    gates=[Gate("fax-line", 2)],
    breakers=[Breaker("vision-api")],
    budgets=[Budget("ai", 500, "USD"), Budget("sms", 40, "EUR", per_tenant=True, on_spent="park")],
    config=NO_RATE,
)


class GatewayTimeout(Exception):  # noqa: N818 (as such errors are called)
    """A gateway that does not answer."""


class UnreadablePicture(Exception):  # noqa: N818 (as such errors are called)
    """A picture of which nobody can say what it shows."""


@app.schedule(
    "30 2 * * *",
    name="digest",
    timezone="Europe/Berlin",
    for_tenants={"plan": "pro"},
    spread="20m",
    arguments={"to": "everybody@example.org"},
)
@app.task(name="mail.send", queue="mail", sensitive=["token"])
def send_mail(ctx: Context, to: str, token: str = "", password: str = "") -> str:
    """Send a mail."""
    ctx.log.info("writing to %s", to)
    return f"sent to {to}"


@app.schedule(
    "*/5 * * * MON-FRI",
    name="prices",
    timezone="America/New_York",
    between=("09:30", "16:00"),
    tenant="globex",
    catch_up="skip",
    overlap="skip",
    arguments={"row": 1, "file": "prices.csv"},
    note="while the exchange is open",
)
@app.task(name="catalog.import_row", queue="bulk", retry=Backoff.delays(1, 2))
def import_row(ctx: Context, row: int, file: str = "nov.csv", pause: float = 0.0) -> int:
    """Import one row of a customer's file."""
    ctx.log.info("row %s of %s", row, file)
    time.sleep(pause)
    if row % 7 == 0:
        raise ValueError(f"price of row {row} must not be negative")
    return row


@app.task(name="fax.send", queue="mail", retry=Backoff.delays(1, 60), timeout=30, gate="fax-line")
async def send_fax(ctx: Context, document: str, to: str) -> None:
    """Send a document to a machine of the past."""
    ctx.log.info("submitting %s", document)
    raise GatewayTimeout(f"no response within 20 s for {to}")


@app.task(name="catalog.describe", queue="bulk", budget="ai", breaker="vision-api", max_attempts=1)
def describe(ctx: Context, picture: str, price: Decimal) -> str:
    """Let a machine say what a picture shows, which costs money; of a broken one it says nothing."""
    ctx.spend(price, "USD")
    if picture.startswith("broken"):
        raise UnreadablePicture(f"cannot read {picture}")
    return "a cat"


@app.task(name="sms.send", queue="mail", budget="sms")
def send_sms(ctx: Context, to: str, price: Decimal) -> None:
    """Send a short message."""
    ctx.log.info("texting %s", to)
    ctx.spend(price, "EUR")


@app.schedule(every="15m", name="usage", tenant="acme", arguments={"month": "now"}, catch_up=10)
@app.schedule("0 9 * * MON", name="weekly-report", tenant="initech", arguments={"month": "November"})
@app.task(name="reports.render", queue="reports")
def render_report(ctx: Context, month: str) -> None:
    """Render a report, or find that nobody wants it."""
    raise Cancel(f"nobody wants the report of {month}")


def fill(rows: int = 30) -> None:
    """Enqueue jobs of three tenants; some fail, some wait for later."""
    calls: list[Call[Any]] = [
        import_row.using(tenant="globex", tags=["nov"]).bind(row) for row in range(1, rows + 1)
    ]
    for number, tenant in enumerate(["acme", "initech", "globex", "acme"]):
        mail = send_mail.using(tenant=tenant, correlation_id=f"order-{number}", created_by="ann@example.org")
        calls.append(mail.bind(f"user{number}@example.org", token=f"tok-{number}", password="hunter2"))
        calls.append(
            send_fax.using(tenant=tenant, correlation_id=f"order-{number}").bind(
                f"inv-{number}", "43-1-{number}"
            )
        )
    calls.append(render_report.using(tenant="initech").bind("November"))
    app.enqueue_many(calls)
    later = send_mail.using(tenant="acme", delay=timedelta(hours=3), priority=5)
    later.enqueue("later@example.org")


class _Then:
    """The clock of a store that is asked at a time of the past."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> Instant:
        """Return that time."""
        return self.at


_ODD: Final[dict[int, tuple[SlotState, str]]] = {
    11: ("skipped", "an earlier job is not done"),
    20: ("missed", ""),
    25: ("failed", "tenant globex has 9 jobs waiting in bulk; the limit is 9"),
}


async def remember(app: Fairlane, url: str) -> None:
    """Give the declared schedules a past, as if a scheduler had worked for weeks: most went well."""
    clock = _Then()
    store = open_store(url, clock=clock)
    now = to_instant(datetime.now(UTC))
    try:
        for row in (await store.schedules.list(SchedulesListRequest(scope=Scope.all()))).rows:
            spec = row.record.declared
            assert spec is not None
            for number, at in enumerate(slots_between(spec.timing, now - 240 * DAY, now, 100_000)[-29:]):
                clock.at = at + SECOND // 50
                odd = _ODD.get(number + 4 * (len(spec.name) % 2), ("pending", ""))
                await _take(store, spec, at, *odd)
    finally:
        await store.upkeep.aclose()


async def _take(store: Store, spec: ScheduleSpec, at: Instant, state: SlotState, because: str) -> None:
    """Take a slot of the past, and end it."""
    everybody = Scope.all()
    (row,) = (await store.schedules.find(SchedulesFindRequest(scope=everybody, names=(spec.name,)))).rows
    slot = NewSlot(at=at, tenant=spec.tenant, state=state, because=because)
    change = ScheduleChange(name=spec.name, revision=row.revision, record=row.record, slots=(slot,))
    await store.schedules.write(SchedulesWriteRequest(scope=everybody, changes=(change,)))
    if state == "pending":
        many = FanOut(cursor="x", enqueued=28) if spec.tenant is None else None
        end = SlotEnd(schedule=spec.name, at=at, state="enqueued", fan_out=many)
        await store.schedules.end_slots(EndSlotsRequest(scope=everybody, ends=(end,)))


async def who_asks(request: Request) -> Principal | None:
    """Return the caller that the request itself names."""
    named = request.headers.get(CALLER) or request.cookies.get(CALLER, "")
    role, _, tenant = named.partition(":")
    if role not in set(Role):
        return None
    return Principal(name=f"{role}@example.org", role=Role(role), tenant=tenant or None)


async def admin_asks(request: Request) -> Principal | None:
    """Return the caller that the request names, else an administrator."""
    return await who_asks(request) or Principal(name="ann@example.org", role=Role.ADMIN)


if __name__ == "__main__":
    if not app.jobs.count().total:
        fill()
    uvicorn.run(
        asgi(app, authenticate=admin_asks), port=int(os.environ.get("PORT", "8765")), log_level="warning"
    )
