"""The content of `config show`: every effective key, with its value and its source."""

from __future__ import annotations

from pathlib import Path

from fairlane import Backoff, Gate, Lane, Limits, Queue
from fairlane.app.config.display import layers, rows
from fairlane.app.config.keys import all_keys
from tests.config.world import FILE, World

TEXT = """
[app]
tenancy = "required"
[defaults]
timeout = "5m"
[queues.bulk]
retry = { kind = "delays", delays = [10, "90s"] }
limits = { waiting = 500, rate = { limit = 50, burst = 5 } }
[queues.low]
[lanes.fast]
slots = 2
queues = ["low"]
[tasks]
"shop.mail" = { timeout = "90s", retry = { timeout = { kind = "never" } } }
[tenants.acme]
weight = 5
limits.bulk = { running = 8 }
[worker]
max_jobs = 900
duties = false
[archive]
to = "s3://jobs:hunter2@bucket/old"
"""


def test_every_key_in_force_is_shown_with_its_source(world: World) -> None:
    """Default, code, the line of the file, the variable, the option."""
    world.environ = {"FAIRLANE_WORKER__LEASE": "20"}
    configuration = world.configuration(
        TEXT,
        url="sqlite:///shop.db",
        queues=[Queue("bulk", max_waiting=9, limits=Limits(running=4)), Queue("mail", retry=Backoff.never())],
        lanes=[Lane("main", 24, ["bulk"]), Lane("calm", 24, ["bulk"], headroom=0)],
        gates=[Gate("screens", 3)],
        priority_default=7,
    )
    configuration.use(options={"--deadline": ("worker.shutdown_deadline", "2s")})
    shown = {row.key: (row.value, row.source) for row in rows(configuration)}
    file = str(world.folder / FILE)
    wanted = {
        "app.url": ("sqlite:///shop.db", "code"),
        "app.import": ("none", "default"),
        "app.tenancy": ("required", f"{file}:3"),
        "app.priority_default": ("7", "code"),
        "app.fixed_queues": ("false", "default"),
        "defaults.timeout": ("5m", f"{file}:5"),
        "defaults.max_attempts": ("5", "default"),
        "queues.bulk.timeout": ("5m", f"{file}:5"),
        "queues.bulk.retry": ("10s, 90s", f"{file}:7"),
        "queues.bulk.max_attempts": ("3", "implied by retry"),
        "queues.bulk.max_waiting": ("9", "code"),
        "queues.bulk.limits.waiting": ("500", f"{file}:8"),
        "queues.bulk.limits.running": ("4", "code"),
        "queues.bulk.limits.rate": ("50 a minute, burst 5", f"{file}:8"),
        "queues.bulk.rate": ("none", "default"),
        "queues.mail.retry": ("never", "code"),
        "queues.low.cost": ("jobs", "default"),
        "lanes.main.slots": ("24", "code"),
        "lanes.main.headroom": ("3", "default"),
        "lanes.main.prefetch": ("what a round trip needs", "default"),
        "lanes.calm.headroom": ("0", "code"),
        "lanes.fast.queues": ('["low"]', f"{file}:12"),
        "lanes.fast.headroom": ("1", "default"),
        "gates.screens.limit": ("3", "code"),
        'tasks."shop.mail".timeout': ("90s", f"{file}:14"),
        'tasks."shop.mail".retry': ("timeout: never", f"{file}:14"),
        "tenants.acme.weight": ("5", f"{file}:16"),
        "tenants.acme.labels": ("{}", "default"),
        "tenants.acme.limits.bulk.running": ("8", f"{file}:17"),
        "tenants.acme.limits.bulk.waiting": ("500", "queue bulk"),
        "worker.lease": ("20s", "FAIRLANE_WORKER__LEASE"),
        "worker.shutdown_deadline": ("2s", "--deadline"),
        "worker.max_jobs": ("900", f"{file}:19"),
        "worker.duties": ("false", f"{file}:20"),
        "payload.warn_over": ("10KB", "default"),
        "retention.dead_unreviewed": ("30d", "default"),
        "retention.dead_from": ("decision", "default"),
        "retention.newest_dead": ("none", "default"),
        "archive.to": ("s3://jobs:***@bucket/old", f"{file}:22"),
        "dead_letters.key": ("{key}#r{n}", "default"),
        "events.keep": ("7d", "default"),
        "audit.key": ("none", "default"),
        "retention.attempts_per_job": ("10", "default"),
    }
    assert {key: shown.get(key) for key in wanted} == wanted
    assert layers(configuration) == ["default", "code", file, "environment", "command line"]


def test_without_anything_the_defaults_are_shown(world: World) -> None:
    """And they are those of the reference page."""
    configuration = world.configuration()
    shown = {row.key: row for row in rows(configuration)}
    assert {row.source for row in shown.values()} == {"default"}
    assert layers(configuration) == ["default", "code", "config= in code"]
    named = {name: key for name, key in all_keys() if not any(map(str.isupper, name))}
    assert [key for key in shown if not key.startswith("queues.default.")] == list(named)
    differing = {
        name: (key.default, shown[name].value)
        for name, key in named.items()
        if not name.endswith(("retry", ".rate")) and key.default.strip('"') != shown[name].value
    }
    here = f"sqlite:///{Path.cwd()}/fairlane.db"
    assert differing == {"app.url": ('"sqlite:///fairlane.db"', here)}


def test_rows_come_in_the_order_of_the_tables(world: World) -> None:
    """What belongs together stands together."""
    text = (Path(__file__).parent / "whole_file.toml").read_text(encoding="utf-8")
    world.environ = {"STORE_URL": "sqlite:///x.db", "AUDIT_KEY": "0123456789abcdef", "WEB_SECRET": "x" * 16}
    tables = [row.key.split(".")[0] for row in rows(world.configuration(text))]
    assert list(dict.fromkeys(tables)) == [
        "app", "defaults", "queues", "lanes", "gates", "breakers", "budgets", "tasks", "tenants",
        "schedules", "worker",
        "payload", "errors", "retention", "archive", "dead_letters", "events", "audit", "web", "doctor",
    ]  # fmt: skip
    assert tables == sorted(tables, key=list(dict.fromkeys(tables)).index)
