"""A task as workers publish it, and as others take it up who do not have its handler (S33)."""

from __future__ import annotations

import msgspec

from fairlane.app.declaration import Declaration, in_force
from fairlane.app.from_json import Schema, enums_in
from fairlane.app.handler import Handler
from fairlane.app.schema import schema_of
from fairlane.app.settings import Settings
from fairlane.model.instants import SECOND, to_micros
from fairlane.model.priority import at_edge
from fairlane.model.upcast import Upcasters
from fairlane.store.contract.registry import TaskCard


def card_of(task: Declaration, settings: Settings) -> TaskCard:
    """Publish a task with the values in force, so that a job made by name is like any other."""
    said, queue = in_force(task, settings.tasks), settings.queue(task.queue)
    timeout = queue.timeout if isinstance(said.timeout, msgspec.UnsetType) else said.timeout
    priority = settings.priority_default if said.priority is None else said.priority
    return TaskCard(
        name=said.name,
        queue=said.queue,
        version=said.version,
        schema=msgspec.json.encode(schema_of(said.handler)),
        aliases=said.aliases,
        sensitive=said.sensitive,
        priority=at_edge(priority, lower_first=settings.is_lower_first),
        timeout=None if timeout is None else to_micros(timeout),
        max_attempts=said.implied_attempts() or queue.max_attempts,
        dedup_until=said.dedup_until,
        at_most_once=said.at_most_once,
        system=said.system,
        module=said.handler.func.__module__ or "",
    )


def declaration_of(card: TaskCard, schema: Schema, settings: Settings) -> Declaration:
    """Take up a published task, with the Enums that its schema names."""
    handler = Handler(_not_here, card.name)
    handler.argument_enums = enums_in(schema)
    return Declaration(
        name=card.name,
        handler=handler,
        upcasters=Upcasters(card.name),
        queue=card.queue,
        version=card.version,
        sensitive=card.sensitive,
        priority=at_edge(card.priority, lower_first=settings.is_lower_first),
        timeout=None if card.timeout is None else card.timeout / SECOND,
        max_attempts=card.max_attempts,
        dedup_until=card.dedup_until,
        at_most_once=card.at_most_once,
        system=card.system,
        is_elsewhere=True,
    )


def _not_here() -> None:
    """Stand for a handler that only workers have."""
