"""Load statements and functions, with the schema and the model's words written in. Runs none of them.

A file of statements has named parts: each begins with `-- name: words` and ends where the next begins.
These marks are replaced when a text is loaded, never when it is run:

- `{schema}` is the installation's schema, quoted;
- `{delayed}`, `{ready}` … are the states of a job as literals, so that no bound parameter hides a partial
  index from the planner; `{no_ready}`, `{open}`, `{parked}`, `{all_parked}` are those of tenant queues and
  strands;
- `{dead_letter}`, `{budget_alert}`, `{budget_spent}` are kinds of events;
- `{spent}` is the parameter after the columns of ends, from $8 on; `{max_spenders}`, `{others}`,
  `{spend_kept}`, `{claims_kept}`, `{largest_amount}` are the bounds of budgets;
- lists of columns, as `{record}` and `{new_params}`, come from `columns`; `{new_from_6}` are parameters from
  $6 on;
- `{max_due}`, `{max_parked}`, `{max_unparked}` are the bounds of one claim, `{priority_step}` is a number of
  the model, `{forever}` the end of what has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import SimpleNamespace
from typing import Final

from fairlane.model.instants import LAST_INSTANT
from fairlane.model.journal.kinds import EventKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.amounts import LARGEST
from fairlane.model.policy.budget import CLAIMS_KEPT, MAX_SPENDERS, OTHERS, SPEND_KEPT
from fairlane.model.scheduling.priority import STEP
from fairlane.store.contract.breakers import MAX_OPEN_BREAKERS
from fairlane.store.contract.claims import MAX_DUE, MAX_PARKED, MAX_UNPARKED
from fairlane.store.postgres.columns import ENDS, MARKS, SENT, parameters
from fairlane.store.postgres.policies.effective_rules import FOREVER
from fairlane.store.sql_files import named_statements

_HOME: Final[Traversable] = files("fairlane.store.postgres")
_QUEUE_STATES: Final = ("no_ready", "open", "parked", "all_parked")
"""States of `tenant_queue` and `strand`, numbered in this order; a strand is never the last."""

_FROM: Final = re.compile(r"\{(new|end)_from_(\d+)\}")
_LISTS: Final = {"new": SENT, "end": ENDS}
_VALUES: Final = {
    **MARKS,
    **{f"{{{state.value}}}": f"'{state.value}'" for state in State},
    **{f"{{{name}}}": str(number) for number, name in enumerate(_QUEUE_STATES)},
    "{budget_alert}": f"'{EventKind.BUDGET_ALERT.value}'",
    "{budget_spent}": f"'{EventKind.BUDGET_SPENT.value}'",
    "{spend_kept}": str(SPEND_KEPT),
    "{claims_kept}": str(CLAIMS_KEPT),
    "{max_spenders}": str(MAX_SPENDERS),
    "{others}": f"'{OTHERS}'",
    "{largest_amount}": f"{LARGEST}::bigint",
    "{spent}": f"${8 + len(ENDS)}::bigint[]",
    "{dead_letter}": f"'{EventKind.DEAD_LETTER.value}'",
    "{priority_step}": f"{STEP}::bigint",
    "{max_due}": str(MAX_DUE),
    "{max_open_breakers}": str(MAX_OPEN_BREAKERS),
    "{max_parked}": str(MAX_PARKED),
    "{max_unparked}": str(MAX_UNPARKED),
    "{forever}": str(FOREVER),
    "{last_instant}": str(LAST_INSTANT),
}


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL.

    >>> quoted('odd"name')
    '"odd""name"'
    """
    return '"' + name.replace('"', '""') + '"'


def rendered(text: str, schema: str) -> str:
    """Return a text with its marks replaced."""
    text = _FROM.sub(lambda found: parameters(_LISTS[found[1]], int(found[2])), text)
    for mark, value in _VALUES.items():
        text = text.replace(mark, value)
    return text.replace("{schema}", quoted(schema))


@cache
def load(name: str, schema: str) -> SimpleNamespace:
    """Return the named parts of `sql/NAME.sql` as attributes."""
    return named_statements(rendered((_HOME / "sql" / f"{name}.sql").read_text("utf-8"), schema), {})


def texts(folder: str) -> tuple[tuple[str, str], ...]:
    """Return name and text of every file in `migrations` or `functions`, in order, not rendered yet."""
    return tuple(
        (entry.name.removesuffix(".sql"), entry.read_text("utf-8")) for entry in _files(_HOME / folder)
    )


def _files(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith(".sql"):
            yield entry
