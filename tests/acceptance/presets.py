"""The five described systems as declarations: queues, lanes, limits, retries and tasks. Runs nothing.

Their slots are what one tenant may have, as described: no lane keeps any of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlane import Backoff, Budget, ErrorClass, Fairlane, Gate, Lane, Limits, Queue, Rate, Task


@dataclass(frozen=True, slots=True)
class Preset:
    """An application and its tasks by name."""

    app: Fairlane
    tasks: Mapping[str, Task[..., Any]]

    def __getitem__(self, task: str) -> Task[..., Any]:
        return self.tasks[task]


async def work(number: int = 0) -> int:
    """Do what every task of a preset does: give back its number."""
    return number


def _tasks(app: Fairlane, homes: Mapping[str, str | None], **options: Any) -> dict[str, Task[..., Any]]:
    return {name: app.task(name=name, queue=home, **options)(work) for name, home in homes.items()}


# ── A: isolation of organisations ─────────────────────────────────────────────

A_HOMES: Final = {
    "send_fax": "critical",
    "send_notification": "critical",
    "sync_keycloak_session": "critical",
    "refresh_token": "critical",
    "process_delta": "default",
    "webhooks.dispatch": "default",
    "email.send": "default",
    "process_batch": "bulk",
    "reports.generate": "bulk",
    "full_export": "bulk",
}

A_QUEUES: Final = (
    Queue("critical", timeout=60, retry=Backoff.delays(10, 30, 60)),
    Queue("default", timeout=300, retry=Backoff.delays(60, 300, 900), limits=Limits(waiting=500)),
    Queue(
        "bulk",
        timeout=600,
        retry=Backoff.delays(300, 900),
        limits=Limits(waiting=100),
        rate=Rate(50, "minute"),
    ),
)

A_LANES: Final = (
    Lane("critical", 4, ["critical"], headroom=0),
    Lane("default", 8, ["default"], headroom=0),
    Lane("bulk", 2, ["bulk"], headroom=0),
)


def isolation(url: str) -> Preset:
    """Three queues with limits of each organisation; a task that is not listed names no queue."""
    app = Fairlane(url, queues=A_QUEUES, lanes=A_LANES, fixed_queues=True)
    return Preset(app, _tasks(app, {**A_HOMES, "unlisted.method": None}))


# ── B: job processor ──────────────────────────────────────────────────────────

B_RETRY: Final = Backoff.exponential(1, cap=3_600, floor=0.1, jitter=0.1)
B_ATTEMPTS: Final = 4
"""The walk-through's reading: the first run and three more."""


def processor(url: str, *, attempts: int = B_ATTEMPTS) -> Preset:
    """Weighted queues, doubling delays."""
    queues = [
        Queue(name, timeout=300, max_attempts=attempts, retry=B_RETRY) for name in ("high", "default", "low")
    ]
    app = Fairlane(url, queues=queues, lanes=[Lane("main", 4, {"high": 3, "default": 2, "low": 1})])
    return Preset(app, _tasks(app, {"urgent": "high", "usual": "default", "idle": "low"}))


# ── C: payload rules, concurrency, dead letters ───────────────────────────────

_C_USUAL: Final = Backoff.exponential(2, cap=300, jitter=0.2)
C_RETRY: Final = {
    ErrorClass.TRANSIENT: _C_USUAL,
    ErrorClass.RETRYABLE: _C_USUAL,
    ErrorClass.RATE_LIMITED: Backoff.exponential(60, cap=300, jitter=0.2),
}


C_CATEGORIES: Final[dict[str, list[str]]] = {
    "ingestion": ["connection_id"],
    "sync": ["connection_id"],
    "recurrence": ["rule_id"],
    "orchestration": ["workflow_id"],
    "documents": ["document_id"],
    "notifications": ["recipient_id"],
    "export": ["export_id"],
    "maintenance": [],
}


async def run_any(
    connection_id: int | None = None,
    rule_id: int | None = None,
    workflow_id: int | None = None,
    document_id: int | None = None,
    recipient_id: int | None = None,
    export_id: int | None = None,
) -> None:
    """Take what any category needs."""


async def fetch(connection_id: int, message_id: int) -> dict[str, int]:
    """Fetch one message."""
    return {"fetched_count": 10}


def strict(url: str) -> Preset:
    """Tenant, correlation id and key required, nothing sensitive allowed; smaller priorities first."""
    app = Fairlane(
        url,
        queues=[Queue("default", max_attempts=5, retry=C_RETRY)],
        tenancy="required",
        priority="lower_first",
        priority_default=2,
        payload={
            "sensitive": "reject",
            "require": ["correlation_id", "idempotency_key"],
            "categories": C_CATEGORIES,
        },
        errors={"message": 500},
    )
    tasks: dict[str, Task[..., Any]] = {"fetch": app.task(name="fetch", category="ingestion")(fetch)}
    for category in C_CATEGORIES:
        tasks[category] = app.task(name=f"{category}.run", category=category)(run_any)
    return Preset(app, tasks)


# ── D: lanes, patterns, operations ────────────────────────────────────────────

D_RETRY: Final = Backoff.exponential(1, cap=300, jitter=0.1)
D_HOMES: Final = {
    "email": "fast",
    "produce-reminders": "fast",
    "cleanup-jobs": "fast",
    "integration": "fast",
    "webhook": "fast",
}


def lanes(url: str) -> Preset:
    """A fast lane and a general one; the general lane also serves the fast queue."""
    app = Fairlane(
        url,
        queues=[
            Queue("fast", timeout=120, max_attempts=3, retry=D_RETRY),
            Queue("slow", timeout=1_200, max_attempts=3, retry=D_RETRY),
        ],
        lanes=[Lane("fast", 3, ["fast"], headroom=0), Lane("general", 5, ["fast", "slow"], headroom=0)],
        priority="lower_first",
        priority_default=100,
    )
    tasks = _tasks(app, D_HOMES)
    tasks |= _tasks(app, {"analysis": "slow"}, timeout=600) | _tasks(app, {"elevation": "slow"}, timeout=300)
    tasks |= _tasks(app, {"slow": "slow"})
    return Preset(app, tasks)


# ── E: queue families ─────────────────────────────────────────────────────────

E_RETRY: Final = Backoff.exponential(30, cap=math.inf, jitter=0.25)
E_PRIORITIES: Final = {"high": 0, "default": 5, "screenshot": 6, "low": 7, "bulk": 8}
E_SLOTS: Final = {"high": 20, "default": 10, "screenshot": 3, "low": 5, "bulk": 8}
E_HOMES: Final = {
    "RSS_FEED_REFRESH": "default",
    "WEATHER_REFRESH": "default",
    "LISTING_EXPIRATION": "default",
    "RANK_RECALCULATION": "default",
    "INBOUND_EMAIL": "default",
    "STOCK_REFRESH": "high",
    "MESSAGE_RELAY": "high",
    "SOCIAL_REFRESH": "low",
    "LINK_HEALTH_CHECK": "low",
    "SITEMAP_GENERATION": "low",
    "CLICK_ROLLUP": "low",
    "AI_TAGGING": "bulk",
    "IMAGE_PROCESSING": "bulk",
    "SCREENSHOT_CAPTURE": "screenshot",
}


def families(url: str, *, gate: int = 3) -> Preset:
    """Five families that tasks never leave, each with its slots and priority; screenshots behind a gate."""
    app = Fairlane(
        url,
        queues=[Queue(name, max_attempts=5, retry=E_RETRY) for name in E_SLOTS],
        lanes=[Lane(name, slots, [name], headroom=0) for name, slots in E_SLOTS.items()],
        gates=[Gate("screenshots", gate)],
        budgets=[Budget("ai-tagging", "500.00", "USD", estimate="0.02", on_spent="fail")],
        fixed_queues=True,
        priority="lower_first",
    )
    tasks: dict[str, Task[..., Any]] = {}
    for name, home in E_HOMES.items():
        behind = "screenshots" if home == "screenshot" else None
        budget = "ai-tagging" if name == "AI_TAGGING" else None
        tasks |= _tasks(app, {name: home}, priority=E_PRIORITIES[home], gate=behind, budget=budget)
    return Preset(app, tasks)
