"""Everything about the selected row, on a screen over the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from fairlane import Fairlane
from fairlane.app.redaction import Redactor, secret_names
from fairlane.cli.invocation import now_of
from fairlane.cli.render.escaping import lines
from fairlane.cli.render.job import full_fields
from fairlane.model.scope import Scope


class DetailScreen(ModalScreen[None]):
    """The fields of one thing; Escape closes it."""

    CSS = """
    DetailScreen { align: center middle; }
    #detail { width: 95%; height: 90%; border: round $accent; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "Close"),
    ]

    def __init__(self, title: str, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._title = title
        self._fields = fields

    def compose(self) -> ComposeResult:
        """Show a field per line."""
        text = Text()
        widest = max(map(len, self._fields), default=0)
        for name, value in self._fields.items():
            first, *more = lines(value)
            text.append(f"{name:<{widest}}  ", style="bold")
            text.append(first + "\n")
            for line in more:
                text.append(" " * (widest + 2) + line + "\n")
        with VerticalScroll(id="detail") as box:
            box.border_title = Text(self._title).plain
            yield Static(text)
        yield Footer()


async def job_fields(app: Fairlane, id: str) -> dict[str, str]:
    """Return everything about a job, redacted, and why it does not run."""
    record = await app.client.aget(UUID(id), Scope.all())
    names = await secret_names(app.client, [record.task], Scope.all())
    job: Any = app.client.show(record)
    fields = full_fields(record, job, Redactor(reveals=False, names=names[record.task]), await now_of(app))
    shown = {name: str(value) for name, value in fields.items() if value not in {None, ""}}
    waiting = await app.jobs.aexplain(record.id)
    return {**shown, "reason": f"{waiting.reason}: {waiting.advice}".removesuffix(": ")}
