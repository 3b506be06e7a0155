"""A whole file: every value in it is read."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from pathlib import Path

import pytest

from fairlane import Backoff, Budget, ErrorClass, Gate, Lane, Limits, Queue, Rate, Share
from fairlane.app.archive_settings import ArchiveSettings
from fairlane.app.config.keys import TREE
from fairlane.app.doctor_settings import DoctorSettings
from fairlane.app.journal_settings import AuditSettings, DeadLetterSettings, EventSettings
from fairlane.app.schedules.options import WORDS
from fairlane.app.settings import TaskSettings
from fairlane.app.web_settings import WebSettings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.access import Role
from fairlane.model.failure import ErrorBounds
from fairlane.model.instants import DAY, SECOND
from fairlane.model.payload.encoding import PayloadRules
from fairlane.model.policy.declared import budget_rules
from fairlane.model.policy.overrides import TenantRules
from fairlane.model.policy.retention import Retention
from tests.config.world import World

TEXT = (Path(__file__).parent / "whole_file.toml").read_text(encoding="utf-8")
SLOWLY = Backoff.exponential(30, cap=900, jitter=0.25)
BULK = Limits(waiting=5000, running=4, rate=Rate(50, burst=5))


def test_every_value_of_a_whole_file_is_read(world: World) -> None:
    """Into the same values that code would declare."""
    audit, web = "0123456789abcdef", "x" * 16
    world.environ = {"STORE_URL": "sqlite:///site.db", "AUDIT_KEY": audit, "WEB_SECRET": web}
    settings = world.settings(TEXT)
    assert (settings.url, settings.import_) == ("sqlite:///site.db", "site.jobs:app")
    assert (settings.tenancy, settings.fixed_queues) == ("open", True)
    assert (settings.is_lower_first, settings.priority_default) == (True, 5)
    assert settings.queues == {
        "default": Queue("default", 300, 5, SLOWLY),
        "high": Queue("high", 30, 5, SLOWLY),
        "screenshot": Queue("screenshot", 90, 5, SLOWLY),
        "low": Queue("low", 300, 5, SLOWLY),
        "bulk": Queue(
            "bulk",
            1200,
            5,
            SLOWLY,
            BULK,
            max_waiting=1_000_000,
            cost="seconds",
            stuck_after=7200,
            on_stuck="requeue",
        ),
    }
    assert settings.lanes == (
        Lane("high", 20, ("high",)),
        Lane("default", 10, ("default", "screenshot", "low"), headroom=1),
        Lane("bulk", 8, {"bulk": Share()}),
    )
    assert settings.gates == (Gate("screenshots", 12),)
    (budget,) = settings.budgets
    zone, shares = "Europe/Berlin", (0.5, 1.0)
    ai = Budget("ai", 500, "USD", "month", zone, Decimal("0.02"), "park", per_tenant=True, alert_at=shares)
    assert budget_rules(budget) == budget_rules(ai)
    assert settings.tasks == {
        "CAPTURE": TaskSettings(gate="screenshots"),
        "QUOTES": TaskSettings(soft_timeout=20, on_bad_result="dead", stuck_after=900, on_stuck="requeue"),
    }
    big = Limits(waiting=5000, running=8, rate=Rate(200, burst=20))
    assert settings.tenants == {
        "*": TenantRules(1.0),
        "system": TenantRules(2.0),
        "big-customer": TenantRules(5.0, {"plan": "enterprise"}, {"bulk": big}),
    }
    assert settings.worker == WorkerSettings(
        max_jobs=100_000,
        health_host="0.0.0.0",  # noqa: S104 (nothing is bound here)
        health_port=8081,
    )
    assert settings.payload == PayloadRules()
    assert settings.categories == {"mail": ("to", "subject"), "report": ()}
    assert settings.errors == ErrorBounds(message=500, traceback=0)
    assert settings.retention == Retention(
        dead_reviewed=14 * DAY,
        is_from_review=False,
        attempts=25,
        newest_finished=10_000,
        store_limit=20 * 2**30,
        tasks={"shop.click_rollup": 90 * DAY},
        tenants={"acme": 30 * DAY},
        queues={"bulk": DAY},
    )
    assert settings.archive == ArchiveSettings(
        to="s3://jobs:hunter2@bucket/old", format="parquet", compress="none"
    )
    assert settings.dead_letters == DeadLetterSettings(alert_above=None, key="{key}_retry_{time}")
    assert settings.events == EventSettings(keep=DAY, most=500)
    assert settings.doctor == DoctorSettings(
        max_ready=50_000, max_memory=2 * 2**30, min_workers=2, min_clients=0
    )
    assert settings.audit == AuditSettings(key=b"0123456789abcdef", keep=730 * DAY)
    assert settings.web == WebSettings(
        host="::",
        port=8443,
        prefix="/ops/jobs",
        allowed_hosts=("jobs.example.org", "*.internal"),
        trusted_proxies=("10.0.0.7", "fd00::/8"),
        basic_auth=True,
        user_header="X-Forwarded-User",
        user_header_role=Role.VIEWER,
        see_dead_letters=Role.VIEWER,
        review_dead_letters=Role.OPERATOR,
        rate=Rate(10, "second", burst=50),
        max_body=1_048_576,
        statement_limit=SECOND // 2,
        replica_url="postgresql://replica/shop",
        secret="x" * 16,
    )


def test_schedules_are_read_word_by_word(world: World) -> None:
    """As code says them; times may be TOML's own."""
    world.environ = {"STORE_URL": "x", "AUDIT_KEY": "0123456789abcdef", "WEB_SECRET": "x" * 16}
    schedules = world.settings(TEXT).schedules
    assert schedules["rss"] == {
        "task": "RSS_FEED_REFRESH", "every": 900, "for_tenants": {"plan": "pro"}
    }  # fmt: skip
    stocks = schedules["stocks"]
    assert stocks["between"] == (time(9, 30), "16:00")
    assert (stocks["holidays"], stocks["catch_up"]) == ((date(2026, 12, 25),), 10)
    assert (stocks["unique_for"], stocks["timeout"], stocks["arguments"]) == (60, 60, {"symbol": "A"})
    assert set(stocks) | set(schedules["rss"]) == {*WORDS} - {"at"}


def test_the_whole_file_speaks_of_every_table() -> None:
    """A table that is added is added to the example as well."""
    assert [table for table in TREE if f"[{table}" not in TEXT] == []


FORMS = [
    ('{ kind = "exponential" }', Backoff.exponential()),
    ('{ kind = "exponential", base = "1m", factor = 3, cap = "2h", floor = 0.5, jitter = 0 }',
     Backoff.exponential(60, factor=3, cap=7200, floor=0.5, jitter=0)),
    ('{ kind = "delays", delays = [10, "30s", "1m"] }', Backoff.delays(10, 30, 60)),
    ('{ kind = "list", delays = [10], jitter = 0.5 }', Backoff.delays(10, jitter=0.5)),
    ('{ kind = "never" }', Backoff.never()),
    ('{ timeout = { kind = "never" }, rate_limited = { kind = "delays", delays = [60] } }',
     {ErrorClass.TIMEOUT: Backoff.never(), ErrorClass.RATE_LIMITED: Backoff.delays(60)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "retry"), FORMS)
def test_a_retry_has_these_forms(world: World, text: str, retry: object) -> None:
    """Exponential, a list, never, or one of them for each class of error."""
    assert world.settings(f"[queues.bulk]\nretry = {text}\n").queue("bulk").retry == retry
    assert world.settings(f"[tasks]\nsend = {{ retry = {text} }}\n").tasks["send"].retry == retry


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("20", 20 * SECOND),
        ("1.5", 1_500_000),
        ('"20"', 20 * SECOND),
        ('"250ms"', 250_000),
        ('"2h"', 7200 * SECOND),
        ('"1.5 d"', 36 * 3600 * SECOND),
        ('"7d"', 7 * DAY),
        ("0", 0),
    ],
)
def test_a_duration_is_seconds_or_has_a_unit(world: World, text: str, micros: int) -> None:
    """Down to microseconds inside."""
    assert world.settings(f"[retention]\nresults = {text}\n").retention.results == micros


@pytest.mark.parametrize(
    ("text", "size"), [("5000", 5000), ('"10KB"', 10_240), ('"1MB"', 2**20), ('"2GB"', 2**31), ('"7B"', 7)]
)
def test_a_size_is_bytes_or_has_a_unit(world: World, text: str, size: int) -> None:
    """A kilobyte has 1,024."""
    assert world.settings(f"[payload]\nmax_size = {text}\n").payload.max_size == size


def test_none_takes_a_limit_away(world: World) -> None:
    """TOML has no word for it."""
    text = """
        [defaults]
        timeout = "none"
        [queues.bulk]
        max_waiting = "none"
        limits = { waiting = "none", running = "none" }
        [worker]
        max_jobs = "none"
    """
    bulk = Queue("bulk", max_waiting=5, limits=Limits(waiting=1, running=2, on_full="reject"))
    settings = world.settings(text, queues=[bulk])
    assert settings.queue("bulk") == Queue("bulk", timeout=None, limits=Limits(on_full="reject"))
    assert settings.worker.max_jobs is None


def test_an_empty_table_declares_what_it_names(world: World) -> None:
    """`[queues.bulk]` alone says that there is such a queue."""
    assert sorted(world.settings("[queues.bulk]\n[tenants.acme]\n").queues) == ["bulk", "default"]
    assert world.settings("[tenants.acme]\n").tenants == {"acme": TenantRules()}


def test_a_tenants_limits_take_from_the_queue_what_they_do_not_name(world: World) -> None:
    """Decision 0010; for every queue together there is nothing to take from."""
    text = """
        [queues.bulk.limits]
        waiting = 5
        on_full = "reject"
        [tenants.acme.limits]
        bulk = { running = 1 }
        "*" = { running = 2 }
    """
    acme = world.settings(text).tenants["acme"]
    assert acme.limits == {
        "bulk": Limits(waiting=5, on_full="reject", running=1),
        "*": Limits(running=2),
    }
