"""Which tasks of two workers belong to one application, and which to two of the same name."""

from __future__ import annotations

import pytest

from fairlane.app.task.conflicts import TaskConflict, task_conflicts
from fairlane.store.contract.registry import TaskRecord, WorkerRecord

OURS = {"app": "shop", "module": "shop.jobs", "version": 1, "schema": "{}", "queues": ("default",)}


def worker(id: str, **options: object) -> WorkerRecord:
    """Introduce a worker with one task."""
    values = {**OURS, **options}
    task = TaskRecord(
        name="mail",
        queue="default",
        module=str(values["module"]),
        version=int(str(values["version"])),
        schema=str(values["schema"]).encode(),
    )
    return WorkerRecord(
        id=id,
        host="here",
        pid=7,
        version="1",
        queues=tuple(values["queues"]),  # type: ignore[arg-type]
        slots=1,
        tasks=(task,),
        labels=("big", f"app={values['app']}"),
    )


@pytest.mark.parametrize(
    ("other", "difference", "takes_jobs"),
    [
        ({}, None, False),
        ({"version": 2, "schema": "new"}, None, False),
        ({"schema": "new"}, "other arguments in version 1", False),
        ({"module": "shop.mail"}, "module shop.jobs, module shop.mail", False),
        ({"module": ""}, None, False),
        ({"app": "billing"}, None, False),
        ({"app": "billing", "schema": "new", "version": 2}, "other arguments", False),
        ({"app": "billing", "module": "billing"}, "module shop.jobs, module billing", True),
        (
            {"app": "billing", "module": "billing", "queues": ("x", "default")},
            "module shop.jobs, module billing",
            True,
        ),
        (
            {"app": "billing", "module": "billing", "queues": ("x",)},
            "module shop.jobs, module billing",
            False,
        ),
    ],
)
def test_a_clash_is_what_a_deploy_of_one_application_does_not_explain(
    other: dict[str, object], difference: str | None, takes_jobs: bool
) -> None:
    """A new version, or a handler that two applications share, is none; a worker may not say its module."""
    name = str(other.get("app", "shop"))
    wanted = [] if difference is None else [TaskConflict("mail", "shop", name, difference, takes_jobs, "w2")]
    assert list(task_conflicts(worker("w1"), [worker("w2", **other)])) == wanted


def test_a_worker_that_has_other_tasks_does_not_clash() -> None:
    """Nor one that does not say whose it is, and has none."""
    bare = WorkerRecord(id="w2", host="here", pid=7, version="1", queues=("default",), slots=1)
    assert list(task_conflicts(worker("w1"), [bare])) == []
    assert list(task_conflicts(bare, [worker("w1")])) == []
