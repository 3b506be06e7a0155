"""Environment variables: how they are spelled, what they set, and unknown ones."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Gate, Lane, Limits, Queue, Rate
from fairlane.model.instants import SECOND
from tests.config.world import World

GOOD: list[tuple[str, str, Any]] = [
    ("FAIRLANE_URL", "sqlite:///x.db", lambda s: s.url == "sqlite:///x.db"),
    ("FAIRLANE_APP", "shop:app", lambda s: s.import_ == "shop:app"),
    ("FAIRLANE_APP__TENANCY", "declared", lambda s: s.tenancy == "declared"),
    ("FAIRLANE_APP__FIXED_QUEUES", "true", lambda s: s.fixed_queues),
    ("FAIRLANE_APP__PRIORITY_DEFAULT", "-5", lambda s: s.priority_default == -5),
    ("FAIRLANE_DEFAULTS__TIMEOUT", "90s", lambda s: s.queue("any").timeout == 90),
    ("FAIRLANE_DEFAULTS__TIMEOUT", "90", lambda s: s.queue("any").timeout == 90),
    ("FAIRLANE_DEFAULTS__TIMEOUT", "none", lambda s: s.queue("any").timeout is None),
    ("FAIRLANE_DEFAULTS__RETRY", '{ kind = "never" }', lambda s: s.queue("any").retry.gives_up),
    ("FAIRLANE_WORKER__LEASE", "20", lambda s: s.worker.lease == 20 * SECOND),
    ("FAIRLANE_WORKER__MAX_JOBS", "none", lambda s: s.worker.max_jobs is None),
    ("FAIRLANE_PAYLOAD__MAX_SIZE", "1GB", lambda s: s.payload.max_size == 2**30),
    ("FAIRLANE_WORKER__DUTIES", "false", lambda s: not s.worker.duties),
    ("FAIRLANE_PAYLOAD__REQUIRE", '["correlation_id"]', lambda s: s.require == ("correlation_id",)),
    ("FAIRLANE_RETENTION__DEAD_UNREVIEWED", "1d", lambda s: s.retention.dead == 86_400 * SECOND),
    ("FAIRLANE_ARCHIVE__TO", "old", lambda s: s.archive.to == "old"),
    ("FAIRLANE_RETENTION__ATTEMPTS_PER_JOB", "3", lambda s: s.retention.attempts == 3),
    ("FAIRLANE_RETENTION__NEWEST_FINISHED", "10000", lambda s: s.retention.newest_finished == 10_000),
    ("FAIRLANE_RETENTION__TENANTS__ACME", "30d", lambda s: s.retention.tenants["acme"] == 2_592_000 * SECOND),
    ("FAIRLANE_QUEUES__BULK__RATE", "{ limit = 5 }", lambda s: s.queue("bulk").rate == Rate(5)),
    ("FAIRLANE_QUEUES__BULK__LIMITS__RUNNING", "4", lambda s: s.queue("bulk").limits == Limits(running=4)),
    ("FAIRLANE_QUEUES__NEW_MAIL__TIMEOUT", "4", lambda s: s.queue("new-mail").timeout == 4),
    ("FAIRLANE_LANES__MAIN__SLOTS", "9", lambda s: s.lanes[0].slots == 9),
    ("FAIRLANE_GATES__SCREEN_SHOTS__LIMIT", "9", lambda s: s.gates[0].limit == 9),
    ("FAIRLANE_TASKS__SHOP_MAIL__TIMEOUT", "9", lambda s: s.tasks["shop.Mail"].timeout == 9),
    ("FAIRLANE_TENANTS__ACME__WEIGHT", "2.5", lambda s: s.tenants["acme"].weight == 2.5),
    ("FAIRLANE_TEST_POSTGRES", "postgresql://x", lambda s: s.is_default_url),
    ("FAIRLANE_SEED", "5", lambda s: s.is_default_url),
    ("FAIRLANE_FAULTS", "5", lambda s: s.is_default_url),
]


@pytest.mark.parametrize(("name", "text", "holds"), GOOD, ids=[f"{name}={text}" for name, text, _ in GOOD])
def test_a_variable_sets_its_key(world: World, name: str, text: str, holds: Any) -> None:
    """Two underscores between levels; names are found whatever their case and punctuation."""
    world.environ = {name: text, "HOME": "/root", "FAIR": "x"}
    settings = world.settings(
        "[tasks]\n'shop.Mail' = {}\n",
        queues=[Queue("bulk"), Queue("new-mail")],
        lanes=[Lane("main", 1, ["bulk"])],
        gates=[Gate("screen.shots", 1)],
    )
    assert holds(settings)


BAD = [
    ("FAIRLANE_ULR", "x", "", ["FAIRLANE_ULR is not a Fairlane variable", "did you mean 'FAIRLANE_URL'?"]),
    ("FAIRLANE_CONFG", "x", "", ["did you mean 'FAIRLANE_CONFIG'?", "FAIRLANE_TABLE__KEY"]),
    ("FAIRLANE_WORKR__LEASE", "5", "", ["did you mean 'FAIRLANE_WORKER'?"]),
    ("FAIRLANE_", "5", "", ["FAIRLANE_ is not a Fairlane variable"]),
    ("FAIRLANE_LEASE", "5", "", ["FAIRLANE_LEASE is not a Fairlane variable"]),
    ("FAIRLANE_WORKER_LEASE", "5", "", ["is not a Fairlane variable", "did you mean 'FAIRLANE_WORKER'?"]),
    ("FAIRLANE_WORKER__LEESE", "5", "worker.leese", ["no such key", "did you mean 'lease'?"]),
    ("FAIRLANE_WORKER", "5", "worker", ["it names a table", "FAIRLANE_WORKER__KEY"]),
    ("FAIRLANE_QUEUES__BULK", "5", "queues.bulk", ["it names a table"]),
    ("FAIRLANE_WORKER__LEASE__X", "5", "worker.lease.x", ["nothing below"]),
    ("FAIRLANE_WORKER__LEASE", "soon", "worker.lease", ["it is 'soon'", '"90s"']),
    ("FAIRLANE_WORKER__LEASE", "", "worker.lease", ["it is ''"]),
    ("FAIRLANE_WORKER__MAX_JOBS", "two", "worker.max_jobs", ["it is 'two'", "a whole number"]),
    ("FAIRLANE_WORKER__MAX_JOBS", "1.5", "worker.max_jobs", ["it is 1.5"]),
    ("FAIRLANE_WORKER__DUTIES", "yes", "worker.duties", ["it is 'yes'", "true or false"]),
    ("FAIRLANE_APP__TENANCY", "OPEN", "app.tenancy", ["it is 'OPEN'", "open, required"]),
    ("FAIRLANE_DEFAULTS__RETRY", "never", "defaults.retry", ["it is 'never'", "kind"]),
    ("FAIRLANE_DEFAULTS__RETRY", "{ kind = 'x' }", "defaults.retry", ["kind in it is 'x'"]),
    ("FAIRLANE_PAYLOAD__REQUIRE", "tenant", "payload.require", ["a list of"]),
    ("FAIRLANE_PAYLOAD__REQUIRE", "[" * 2000, "payload.require", ["a list of"]),
    ("FAIRLANE_QUEUES__BLUK__TIMEOUT", "5", "queues.bluk", ["not declared", "did you mean 'bulk'?"]),
    ("FAIRLANE_QUEUES__BULK__TIMOUT", "5", "queues.bulk.timout", ["did you mean 'timeout'?"]),
    ("FAIRLANE_QUEUES__C D__TIMEOUT", "5", 'queues."c d"', ["not a legal queue name"]),
    ("FAIRLANE_QUEUES__A_B__TIMEOUT", "5", "queues.a_b", ["it could mean a-b or a.b"]),
    ("FAIRLANE_LANES__FAST__SLOTS", "5", "lanes.fast", ["queues is missing"]),
]


@pytest.mark.parametrize(("name", "text", "key", "words"), BAD, ids=[f"{one[0]}={one[1][:9]}" for one in BAD])
def test_a_bad_variable_is_refused_by_its_name(
    world: World, name: str, text: str, key: str, words: list[str]
) -> None:
    """As its key and its source, with what is allowed or was meant."""
    world.environ = {name: text}
    error = world.error(queues=[Queue("bulk"), Queue("a-b"), Queue("a.b")])
    assert error.key == key
    assert name in str(error)
    assert [word for word in words if word not in str(error)] == []


def test_a_variable_declares_a_queue_only_where_any_may_be_named(world: World) -> None:
    """Where the code declares none, one that only tasks name can still be tuned."""
    world.environ = {"FAIRLANE_QUEUES__MAIL__TIMEOUT": "7"}
    assert world.settings().queue("mail").timeout == 7
    assert world.settings().has_open_queues
    assert world.error(queues=[Queue("bulk")]).key == "queues.mail"
