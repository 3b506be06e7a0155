"""The screen of `fairlane top`: tabs, a filter, one table that is kept current, and what to know about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static, Tab, Tabs

from fairlane import Fairlane, FairlaneError
from fairlane.cli.render.escaping import one_line
from fairlane.cli.top.detail import DetailScreen, job_fields
from fairlane.cli.top.refreshing import Refresher
from fairlane.cli.top.tables import TopColumn, TopRow, fitting, sort_rows
from fairlane.cli.top.views import VIEWS, Look, TopView, ViewName
from fairlane.model.instants import Micros
from fairlane.model.query.matching import matcher
from fairlane.model.query.printing import exactly
from fairlane.model.query.syntax import QueryError

_SCROLL_BAR: Final = 2


class ResizingTable(DataTable[Text]):
    """A table that says when its size has changed, so that the columns that fit now can be chosen."""

    def __init__(self, resized: Callable[[], None]) -> None:
        super().__init__(id="table", cursor_type="row", zebra_stripes=True)
        self._resized = resized

    def on_resize(self) -> None:
        """Tell the board that the size has changed."""
        self._resized()


class TopBoard(App[None]):
    """Shows one view at a time, looks at it again and again, and changes nothing in the store."""

    CSS = """
    #filter { display: none; height: 3; }
    #filter.open { display: block; }
    #about { height: auto; max-height: 4; padding: 0 1; }
    #about.away { background: $error; color: $text; text-style: bold; }
    DataTable { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"view('{name}')", name.capitalize(), show=False)
            for number, name in enumerate(VIEWS, 1)
        ),
        Binding("tab", "next_view(1)", "Next view", show=False, priority=True),
        Binding("shift+tab", "next_view(-1)", "View before", show=False, priority=True),
        Binding("slash", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse"),
        Binding("space", "pause", "Pause"),
        Binding("escape", "clear", "No filter"),
        Binding("q,ctrl+c", "quit", "Quit"),
    ]

    def __init__(self, app: Fairlane, view: str, every: Micros) -> None:
        super().__init__()
        self._fairlane = app
        self.view: ViewName = cast("ViewName", view)
        self.filters: dict[ViewName, str] = {name: one.filter for name, one in VIEWS.items()}
        self.sorts: dict[ViewName, tuple[int, bool]] = {
            name: (one.sort, False) for name, one in VIEWS.items()
        }
        self.refresher = Refresher[Look](app.client.clock, every, self._look)
        # Kept here: while a detail is open, a query would look for them on its screen.
        self.tabs = Tabs(*(Tab(f"{n} {name}", id=name) for n, name in enumerate(VIEWS, 1)), active=view)
        self.box = Input(id="filter", select_on_focus=False)
        self.table = ResizingTable(self.show)
        self.about = Static(id="about", markup=False)
        self._refused = ""
        self._shown: list[TopRow] = []
        self._layout: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        """Put the parts below one another."""
        yield self.tabs
        yield self.box
        yield self.table
        yield self.about
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look; let the age of what is shown grow while the store is away."""
        self.title = "fairlane top"
        self.tabs.can_focus = False
        self.table.focus()
        self.run_worker(self.refresher.run(self.show))
        self.set_interval(1, self._show_about)

    @property
    def _of(self) -> TopView:
        return VIEWS[self.view]

    async def _look(self) -> Look:
        return await self._of.look(self._fairlane, self.filters[self.view])

    # ── what is shown ────────────────────────────────────────────────────────

    def show(self) -> None:
        """Show the last answer: change cells that have changed, or fill the table anew."""
        self._show_about()
        answer = self.refresher.answer
        at, is_reversed = self.sorts[self.view]
        columns = self._titled()
        given = () if answer is None else answer.rows
        rows = sort_rows(given, at, is_number=columns[at].is_number, is_reversed=is_reversed)
        kept = fitting(columns, rows, self.table.size.width - _SCROLL_BAR)
        layout = (self.view, at, is_reversed, tuple(kept), tuple(row.key for row in rows))
        if layout == self._layout:
            self._change_cells(rows, columns, kept)
        else:
            self._fill(rows, columns, kept)
        self._layout, self._shown = layout, rows

    def _titled(self) -> list[TopColumn]:
        """Return the columns, with the direction at the one that the table is sorted by."""
        at, is_reversed = self.sorts[self.view]
        columns = list(self._of.columns)
        arrow = "▲" if columns[at].is_number is is_reversed else "▼"
        columns[at] = TopColumn(f"{columns[at].title} {arrow}", 0, columns[at].is_number)
        return columns

    def _change_cells(self, rows: list[TopRow], columns: list[TopColumn], kept: list[int]) -> None:
        for row_at, (row, before) in enumerate(zip(rows, self._shown, strict=True)):
            for column_at, at in enumerate(kept):
                if row.cells[at].text != before.cells[at].text:
                    text = _cell(row, columns[at], at)
                    self.table.update_cell_at(Coordinate(row_at, column_at), text, update_width=True)

    def _fill(self, rows: list[TopRow], columns: list[TopColumn], kept: list[int]) -> None:
        """Fill the table anew; the cursor stays at its row, wherever that is now."""
        table = self.table
        selected = self._selected() if self._layout[:1] == (self.view,) else None
        table.clear(columns=True)
        for at in kept:
            title = columns[at].title
            table.add_column(Text(title, justify="right" if columns[at].is_number else "left"))
        for row in rows:
            table.add_row(*(_cell(row, columns[at], at) for at in kept), key=row.key)
        keys = [row.key for row in rows]
        if selected in keys:
            table.move_cursor(row=keys.index(selected))

    def _selected(self) -> str | None:
        at = self.table.cursor_row
        return self._shown[at].key if 0 <= at < len(self._shown) else None

    def _show_about(self) -> None:
        """Say whether it is live, how old it is, what it is filtered by, and what was left out."""
        answer = self.refresher.answer
        parts = [self.refresher.status]
        if answer is not None:
            parts += [f"{len(answer.rows)} {self.view}", answer.note]
        if self.filters[self.view]:
            parts.append(f"filter {self.filters[self.view]}")
        self.about.set_class(bool(self.refresher.problem), "away")
        shown = self._refused.split("\n") if self._refused else [" · ".join(filter(None, parts))]
        self.about.update("\n".join(map(one_line, shown)))

    # ── what keys do ─────────────────────────────────────────────────────────

    def action_view(self, name: ViewName) -> None:
        """Show another view."""
        self.tabs.active = name

    def action_next_view(self, step: int) -> None:
        """Show the view beside this one."""
        if isinstance(self.screen, ModalScreen):
            return
        names: list[ViewName] = list(VIEWS)
        self.action_view(names[(names.index(self.view) + step) % len(names)])

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Look at the view of the tab, which a key or the mouse has chosen."""
        name = cast("ViewName", event.tab.id)
        if name != self.view:
            self.view = name
            self._close_filter()
            self._begin()

    def action_filter(self) -> None:
        """Ask for a filter."""
        is_query = self._of is VIEWS["jobs"]
        self.box.placeholder = "a query, as task:mail.* state:dead" if is_query else "a part of the name"
        self.box.value = self.filters[self.view]
        self.box.add_class("open")
        self.box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Filter by what was typed, or say what is wrong with it."""
        try:
            if self._of is VIEWS["jobs"]:
                matcher(event.value, 0)
        except QueryError as error:
            self._refused = str(error)
            self._show_about()
        else:
            self._filter_by(event.value.strip())

    def action_clear(self) -> None:
        """Leave the filter as it is while it is being typed; else show everything."""
        if self.box.has_class("open"):
            self._close_filter()
            self._show_about()
        else:
            self._filter_by("")

    def _filter_by(self, text: str) -> None:
        self._close_filter()
        if text != self.filters[self.view]:
            self.filters[self.view] = text
            self._begin()

    def _close_filter(self) -> None:
        self._refused = ""
        self.box.remove_class("open")
        self.table.focus()

    def _begin(self) -> None:
        """Show nothing of what was shown before, and look."""
        self.refresher.forget()
        self.show()

    def action_sort(self) -> None:
        """Sort by the next column that is shown."""
        at, _ = self.sorts[self.view]
        kept: list[int] = list(self._layout[3]) if self._layout else [at]
        self.sorts[self.view] = (kept[(kept.index(at) + 1) % len(kept)], False)
        self.show()

    def action_reverse(self) -> None:
        """Sort in the other direction."""
        at, is_reversed = self.sorts[self.view]
        self.sorts[self.view] = (at, not is_reversed)
        self.show()

    def action_pause(self) -> None:
        """Stop refreshing until the same key is pressed again."""
        self.refresher.is_paused = not self.refresher.is_paused
        if not self.refresher.is_paused:
            self.refresher.again()
        self._show_about()

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the jobs of a queue, a tenant or a worker, or everything about a job."""
        key = str(event.row_key.value)
        if self._of.opens is not None:
            self.filters["jobs"] = exactly(self._of.opens, key)
            self.action_view("jobs")
            return
        try:
            fields = await job_fields(self._fairlane, key)
        except (FairlaneError, OSError) as error:
            fields = {"error": str(error)}
        await self.push_screen(DetailScreen(f"Job {key}", fields))


def _cell(row: TopRow, column: TopColumn, at: int) -> Text:
    return Text(row.cells[at].text, justify="right" if column.is_number else "left", no_wrap=True)
