"""Categories of payloads: from code and file, by name, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane import ConfigError, Fairlane, InvalidJob
from fairlane.app.task.record import task_record_of
from tests.app.world import World


def fetch(connection_id: int | None = None, page: int = 1) -> None:
    """Take what the tests send."""


def test_a_missing_field_is_listed_with_every_other_problem(world: World) -> None:
    """One error for all of them; a batch names the item."""
    app = world.app(payload={"categories": {"ingestion": ["connection_id"]}})
    task = app.task(name="fetch", category="ingestion")(fetch).using(tenant="acme")
    with pytest.raises(InvalidJob) as caught:
        app.enqueue_many([task.bind(1), task.using(priority=500).bind()])
    assert [(one.index, one.field) for one in caught.value.problems] == [
        (1, "priority"),
        (1, "arguments.connection_id"),
    ]
    assert world.stored() == []
    task.enqueue(1)


def test_a_file_adds_categories_to_those_of_the_code(world: World) -> None:
    """Its fields win for a category of the same name."""
    app = Fairlane(
        "oracle://here",
        payload={"categories": {"ingestion": ["page"], "sync": []}},
        config={"payload": {"categories": {"ingestion": ["connection_id"], "export": []}}},
    )
    world.apps.append(app)
    assert app.settings.categories == {"ingestion": ("connection_id",), "sync": (), "export": ()}


def test_what_a_category_needs_is_published_for_callers_by_name(world: World) -> None:
    """They have no handler to look at."""
    app = world.app(payload={"categories": {"ingestion": ["connection_id"]}})
    app.task(name="fetch", category="ingestion")(fetch)
    (declared,) = app.registry
    record = task_record_of(declared, app.settings)
    assert msgspec.json.decode(record.schema)["required"] == ["connection_id"]


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        (["ingestion"], "payload.categories: it is"),
        ({"In gestion": []}, "is not a legal name"),
        ({"ingestion": "connection_id"}, "payload.categories.ingestion: it is one text"),
        ({"ingestion": [1]}, "1 is in it"),
    ],
)
def test_a_wrong_table_of_categories_is_refused(world: World, categories: Any, words: str) -> None:
    """When the application is made."""
    with pytest.raises(ConfigError, match=words):
        world.app(payload={"categories": categories})


@pytest.mark.parametrize("category", ["In gestion", 7, ""])
def test_a_category_has_a_legal_name(app: Fairlane, category: Any) -> None:
    """When the task is declared."""
    with pytest.raises(ConfigError, match="is not a legal name of a category"):
        app.task(name="fetch", category=category)(fetch)
