"""Redact what is shown of jobs: secrets by field name and by pattern, and what tasks declare secret (S6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlane.app.client import Client
from fairlane.model.payload.sensitive import redact, redact_text
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import TasksRequest


class Redactor:
    """Redacts what looks secret, unless the user asked to reveal it.

    >>> Redactor(reveals=False).text("password=hunter2 at host"), Redactor(reveals=True).value({"pin": 1})
    ('password=[redacted] at host', {'pin': 1})
    """

    def __init__(self, *, reveals: bool, names: Iterable[str] = ()) -> None:
        self._reveals = reveals
        self._names = tuple(names)

    def text(self, text: str | None) -> str | None:
        """Redact the secrets in a text."""
        return text if text is None or self._reveals else redact_text(text, names=self._names)

    def value(self, value: Any) -> Any:
        """Redact the secrets in a value of any shape."""
        return value if self._reveals else redact(value, names=self._names)


REDACTED: Final = Redactor(reveals=False)


async def secret_names(client: Client, tasks: Iterable[str], scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return what each task declares secret: by its code here, else as its workers published it."""
    names: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for task in dict.fromkeys(tasks):
        declared = client.registry.find(task)
        names[task] = () if declared is None else declared.sensitive
        unknown += [task] if declared is None else []
    if unknown:
        request = TasksRequest(scope=scope, names=tuple(unknown))
        for view in await client.store.registry.tasks(request):
            for task in {view.record.name, *view.record.aliases} & set(unknown):
                names[task] += view.record.sensitive
    return names
