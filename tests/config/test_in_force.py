"""The effective values of a job: call over task over queue over defaults."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Backoff, ConfigError, Fairlane, Gate, InvalidJob, Limits, Queue, Rate, TenantRequired
from fairlane.app.task.declaration import with_task_settings
from fairlane.app.task.rules import declared_rules
from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import (
    GateRules,
    QueueRules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from tests.app.world import World


@pytest.fixture
def world() -> Any:
    """An oracle store, and applications that are closed afterwards."""
    made = World()
    yield made
    for app in made.apps:
        app.close()


def note(text: str = "") -> None:
    """Do nothing."""


CALL, TASK_FILE, TASK_CODE, QUEUE_FILE, QUEUE_CODE, DEFAULTS = (
    "call", "task in file", "task in code", "queue in file", "queue in code", "defaults",
)  # fmt: skip
ORDER = (CALL, TASK_FILE, TASK_CODE, QUEUE_FILE, QUEUE_CODE, DEFAULTS)


@pytest.mark.parametrize("silent", range(len(ORDER) + 1))
def test_the_timeout_and_attempts_of_a_job_are_those_of_the_highest_layer_that_speaks(
    world: World, silent: int
) -> None:
    """Call, task in file, task in code, queue in file, queue in code, defaults."""
    speaks = set(ORDER[silent:])
    value = {layer: 10 + at for at, layer in enumerate(ORDER)}

    def table(layer: str) -> dict[str, Any]:
        return {"timeout": value[layer], "max_attempts": value[layer]} if layer in speaks else {}

    config = {
        "defaults": table(DEFAULTS),
        "queues": {"bulk": table(QUEUE_FILE)},
        "tasks": {"note": table(TASK_FILE)},
    }
    app = world.app(config=config, queues=[Queue("bulk", **table(QUEUE_CODE))])
    task = app.task(name="note", queue="bulk", **table(TASK_CODE))(note)
    task.using(**table(CALL)).enqueue("a")
    expected = value[ORDER[silent]] if silent < len(ORDER) else None
    job = world.one()
    assert job.timeout == (1800 if expected is None else expected) * SECOND
    assert job.max_attempts == (5 if expected is None else expected)


def test_a_task_in_the_file_may_have_no_timeout(world: World) -> None:
    """The word is `none`."""
    app = world.app(config={"tasks": {"note": {"timeout": "none"}}})
    app.task(name="note", timeout=5)(note).enqueue()
    assert world.one().timeout is None


def test_a_list_of_delays_in_the_file_implies_the_attempts_of_a_task(world: World) -> None:
    """S26, unless the code gives them."""
    config = {"tasks": {"note": {"retry": {"kind": "delays", "delays": [1, 2]}}}}
    app = world.app(config=config)
    app.task(name="note")(note).enqueue()
    assert world.one().max_attempts == 3


def test_the_file_decides_what_an_enqueue_must_give(world: World) -> None:
    """Tenancy, required keys, size, fixed queues, the direction of priorities."""
    app = world.app(
        config={
            "app": {"tenancy": "required", "fixed_queues": True, "priority": "lower_first"},
            "payload": {"require": ["correlation_id"], "max_size": "1KB"},
            "queues": {"bulk": {}},
        }
    )
    task = app.task(name="note")(note)
    with pytest.raises(TenantRequired):
        task.using(correlation_id="c").enqueue()
    with pytest.raises(InvalidJob) as caught:
        task.using(tenant="acme", queue="bulk", priority=3).enqueue("x" * 2000)
    codes = [problem.code for problem in caught.value.problems]
    assert codes == ["fixed_queue", "too_large", "required"]
    task.using(tenant="acme", priority=3, correlation_id="c").enqueue()
    assert world.one().priority == -3


def test_a_bad_configuration_stops_the_first_enqueue_and_nothing_is_stored(world: World) -> None:
    """The application could be made, and its tasks declared."""
    app = world.app(config={"worker": {"leese": 1}})
    task = app.task(name="note")(note)
    with pytest.raises(ConfigError, match=r"worker\.leese"):
        task.enqueue()
    assert world.asked == []


def test_a_task_in_force_has_the_files_values_over_the_codes() -> None:
    """What the file does not name stays."""
    app = Fairlane(config={"tasks": {"note": {"gate": "b", "rate": {"limit": 5}, "soft_timeout": 3}}})
    declared = app.task(name="note", gate="a", timeout=9, retry=Backoff.never())(note).declared
    held = with_task_settings(declared, app.settings.tasks)
    assert (held.gate, held.rate, held.soft_timeout) == ("b", Rate(5), 3)
    assert (held.timeout, held.retry, held.handler) == (9, Backoff.never(), declared.handler)
    assert with_task_settings(declared, {}) is declared


# ── what a worker writes at its start (S54) ──────────────────────────────────


def declaring(**config: Any) -> Fairlane:
    """Make an application with a queue, a gate and two tasks."""
    app = Fairlane(
        config=config, queues=[Queue("bulk", limits=Limits(running=1))], gates=[Gate("screens", 3)]
    )
    app.task(name="shoot", queue="bulk", gate="screens")(lambda: None)
    app.task(name="call", gate=Gate("api", None, Rate(9)), rate=Rate(7))(lambda: None)
    return app


def test_everything_declared_is_given_as_a_store_takes_it() -> None:
    """Queues, tasks, gates, tenants, and what undeclared tenants get."""
    app = declaring(
        queues={"bulk": {"max_waiting": 5, "cost": "seconds"}},
        gates={"screens": {"limit": 12}},
        tasks={"shoot": {"rate": {"limit": 2}}},
        tenants={"*": {"weight": 2}, "acme": {"labels": {"plan": "big"}, "limits": {"bulk": {"waiting": 1}}}},
    )
    assert declared_rules(app) == {
        Subject(SubjectKind.QUEUE, "bulk"): QueueRules(Limits(running=1), None, 5, "seconds"),
        Subject(SubjectKind.QUEUE, "default"): QueueRules(),
        Subject(SubjectKind.GATE, "screens"): GateRules(12),
        Subject(SubjectKind.GATE, "api"): GateRules(None, Rate(9)),
        Subject(SubjectKind.TASK, "shoot"): TaskRules(Rate(2), "screens"),
        Subject(SubjectKind.TASK, "call"): TaskRules(Rate(7), "api"),
        Subject(SubjectKind.TENANT, "*"): TenantRules(2),
        Subject(SubjectKind.TENANT, "acme"): TenantRules(
            labels={"plan": "big"}, limits={"bulk": Limits(waiting=1, running=1)}
        ),
    }


def test_a_queue_that_only_a_task_names_is_declared_with_the_defaults() -> None:
    """So that a store knows its limits."""
    app = Fairlane(config={"defaults": {"limits": {"running": 2}}})
    app.task(name="note", queue="mail")(note)
    assert declared_rules(app)[Subject(SubjectKind.QUEUE, "mail")] == QueueRules(Limits(running=2))


def test_a_gate_that_nobody_declares_is_refused() -> None:
    """It would limit nothing, and nobody would notice."""
    app = declaring(tasks={"shoot": {"gate": "screen"}})
    with pytest.raises(ConfigError, match=r"gate screen is not declared.*did you mean 'screens'") as caught:
        declared_rules(app)
    assert (caught.value.key, caught.value.allowed) == ("task shoot", "screens, api")


def test_one_gate_declared_in_two_ways_is_refused_unless_the_settings_say_which() -> None:
    """Two decorators, two limits."""
    app = declaring()
    app.task(name="other", gate=Gate("api", 5))(lambda: None)
    with pytest.raises(ConfigError, match="gate api is declared twice"):
        declared_rules(app)
    settled = declaring(gates={"api": {"limit": 1}})
    settled.task(name="other", gate=Gate("api", 5))(lambda: None)
    assert declared_rules(settled)[Subject(SubjectKind.GATE, "api")] == GateRules(1)


def test_a_task_that_the_file_misspells_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The file may be shared by several applications, so it is no error."""
    declared_rules(declaring(tasks={"shot": {"timeout": 5}}))
    assert (
        "there is no task shot, so its values in [tasks] have no effect; did you mean 'shoot'?" in caplog.text
    )
