"""The columns of a job, in one list: lists in SQL, parameters of functions and decoding follow from it.

A new field of a job needs the field in `NewJob` and `JobRecord`, a migration that adds the column to `job`,
`history` and `dead`, and one line in `JOB`. A new field of a settlement needs one line in `ENDS`. Knows no
statement and no connection; `marks` is what `statements` writes into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from fairlane.model.job import ATTEMPTS_KEPT, JobRecord

Group: TypeAlias = Literal["sent", "status", "claim", "end"]
Sending: TypeAlias = Literal["each", "shared", "optional"]


class Column(NamedTuple):
    """One column: in which tables it is, by its group, and how new jobs send it.

    `sent` and `status` are in `job`, `history` and `dead`, `claim` in `job` alone, `end` in the other two.
    A batch sends an `each` column as one value for each job; a `shared` one, never NULL, also as one for all
    of them; an `optional` one, mostly NULL, as NULL where no job has a value. `default` is what workers of
    the version before mean, which do not send the column.
    """

    name: str
    type: str
    group: Group
    sending: Sending | None = None
    sent_type: str | None = None
    default: str | None = None


JOB: Final = (
    Column("id", "uuid", "sent", "each"),
    Column("tenant", "text", "sent", "shared"),
    Column("queue", "text", "sent", "shared"),
    Column("task", "text", "sent", "shared"),
    Column("payload", "bytea", "sent", "each"),
    Column("checksum", "bigint", "sent", "each"),
    Column("version", "int", "sent", "shared"),
    Column("priority", "int", "sent", "shared"),
    Column("enqueued_at", "bigint", "sent"),
    Column("expires_at", "bigint", "sent", "optional"),
    Column("idempotency_key", "text", "sent", "optional"),
    Column("dedup_key", "text", "sent", "optional"),
    Column("dedup_until", "text", "sent", "shared"),
    Column("correlation_id", "text", "sent", "optional"),
    Column("parent_id", "uuid", "sent", "optional"),
    Column("max_attempts", "int", "sent", "shared"),
    Column("timeout", "bigint", "sent", "optional"),
    Column("at_most_once", "boolean", "sent", "shared"),
    Column("tags", "text[]", "sent", "optional", "text"),
    Column("metadata", "bytea", "sent", "shared"),
    Column("created_by", "text", "sent", "optional"),
    Column("stuck_after", "bigint", "sent", "optional"),
    Column("on_stuck", "text", "sent", "shared"),
    Column("state", "text", "status"),
    Column("because", "text", "status"),
    Column("run_at", "bigint", "status", "optional"),
    Column("sort_key", "bigint", "status"),
    Column("attempt", "int", "status"),
    Column("failures", "int", "status"),
    Column("crashes", "int", "status"),
    Column("crashes_alone", "int", "status"),
    Column("snoozes", "int", "status"),
    Column("is_suspect", "boolean", "status"),
    Column("fence", "bigint", "status"),
    Column("attempts", "text[]", "status"),
    Column("worker", "text", "claim"),
    Column("started_at", "bigint", "claim"),
    Column("lease_until", "bigint", "claim"),
    Column("is_cancel_asked", "boolean", "claim"),
    Column("progress", "bytea", "claim"),
    Column("settled_at", "bigint", "end"),
    Column("result", "bytea", "end"),
)
"""Every column that a `JobRecord` is read from."""

RECORD: Final = tuple(sorted(JOB, key=lambda column: JobRecord.__struct_fields__.index(column.name)))
"""The same in the order of `JobRecord`, in which all statements return them."""

SENT: Final = (
    *(column for column in JOB if column.sending),
    Column("delay", "bigint", "sent", "optional"),
    Column("expires_in", "bigint", "sent", "optional"),
)
"""What a new job is sent with: columns, and spans of time that the store's own clock turns into instants."""

_BY_HAND: Final = frozenset({"expires_at", "tags", "run_at", "delay", "expires_in"})
"""Those of `SENT` that functions/jobs/enqueue.sql works out itself; the others are copied as they come."""

ENDS: Final = (
    Column("state", "text", "status"),
    Column("because", "text", "status"),
    Column("delay", "bigint", "status"),
    Column("failures", "int", "status"),
    Column("crashes", "int", "status"),
    Column("crashes_alone", "int", "status"),
    Column("snoozes", "int", "status"),
    Column("is_suspect", "boolean", "status"),
    Column("tail", "text", "end"),
    Column("learns", "boolean", "end"),
    Column("result", "bytea", "end"),
    Column("kept", "int", "end", default=str(ATTEMPTS_KEPT)),
    Column("metadata", "bytea", "end", default="NULL"),
)
"""What a job becomes when an attempt or a wait ends. `tail`: the end of the attempt's record, from its
outcome on, or NULL where no attempt ended: the job waited, or its claim comes back unstarted (S68);
`learns`: the duration tells what the task takes; `kept`: how many ended attempts the job keeps;
`metadata`: what its handler has made of it."""

_KEPT_IF_NULL: Final = ("failures", "crashes", "crashes_alone", "snoozes", "is_suspect", "metadata")
"""Those of `ENDS` that stay as they are where they are NULL."""

_CONTENTS: Final = {
    "payload": "''::bytea AS payload",
    "attempts": "NULL::text[] AS attempts",
    "result": "NULL::bytea AS result",
}
"""What stands for the large columns of a finished job where a record is read for what it is about."""

FILTERED: Final = (
    *("enqueued_at", "id", "tenant", "queue", "task", "state", "because"),
    *("correlation_id", "parent_id", "tags", "created_by"),
)
"""What filters and counts look at, in every home."""


def _names(*groups: Group) -> str:
    return ", ".join(column.name for column in JOB if column.group in groups)


def _places(more: int = 0) -> str:
    """Return a place for each column of a finished job, after `more` others."""
    count = sum(column.group != "claim" for column in JOB)
    return ", ".join(f"${place}" for place in range(1, more + count + 1))


def _each(columns: Iterable[Column], write: Callable[[Column], str]) -> str:
    return ", ".join(map(write, columns))


def _selected(*groups: Group, without: Mapping[str, str] = {}) -> str:
    """Return the select list of a whole record from a table that has only the columns of these groups."""
    missing = {"is_cancel_asked": "false AS is_cancel_asked"}
    return _each(
        RECORD,
        lambda column: (
            without.get(column.name, column.name)
            if column.group in groups
            else missing.get(column.name, f"NULL::{column.type} AS {column.name}")
        ),
    )


def _copied() -> list[Column]:
    return [column for column in SENT if column.name not in _BY_HAND]


def _inserted(column: Column) -> str:
    is_shared = column.sending == "shared"
    return f"coalesce({column.name}, p_{column.name}[1])" if is_shared else column.name


def _ended(job: str, end: str) -> str:
    """Return the columns of a finished job, from what its row was and what its end says."""
    values = {name: f"{end}{name}" for name in ("state", "because", "result")}
    values |= {name: f"coalesce({end}{name}, {job}{name})" for name in _KEPT_IF_NULL}
    past = ", ".join(job + name for name in ("attempts", "attempt", "worker", "started_at"))
    values |= {
        "settled_at": "p_now",
        "attempts": f"{{schema}}.append_attempt(p_now, {past}, {end}tail, {end}kept)",
    }
    finished = (column.name for column in JOB if column.group != "claim")
    return ", ".join(f"{values.get(name, job + name)} AS {name}" for name in finished)


def _end_parameter(column: Column) -> str:
    default = "" if column.default is None else f" DEFAULT ARRAY[{column.default}]::{column.type}[]"
    return f"p_{column.name} {column.type}[]{default}"


def parameters(columns: Iterable[Column], first: int) -> str:
    """Return the parameters of a statement for arrays of these columns.

    >>> parameters((Column("id", "uuid", "sent"), Column("tags", "text[]", "sent", "optional", "text")), 3)
    '$3::uuid[], $4::text[]'
    """
    return ", ".join(f"${n}::{column.sent_type or column.type}[]" for n, column in enumerate(columns, first))


MARKS: Final = {
    "{sent}": _names("sent"),
    "{status}": _names("status"),
    "{finished}": _names("sent", "status", "end"),
    "{finished_places}": _places(),
    "{letter_places}": _places(2),
    "{record}": _each(RECORD, lambda column: column.name),
    "{record_types}": _each(RECORD, lambda column: f"{column.name} {column.type}"),
    "{record_of_job}": _selected("sent", "status", "claim"),
    "{record_of_finished}": _selected("sent", "status", "end"),
    "{record_without_contents}": _selected("sent", "status", "end", without=_CONTENTS),
    "{letter}": "error_class, fingerprint, review, review_record",
    "{no_record}": _each(RECORD, lambda column: f"NULL::{column.type}"),
    "{filtered}": ", ".join(FILTERED),
    "{new_params}": _each(SENT, lambda column: f"p_{column.name} {column.sent_type or column.type}[]"),
    "{new_args}": _each(SENT, lambda column: f"p_{column.name}"),
    "{new_names}": _each(SENT, lambda column: column.name),
    "{new_copied}": _each(_copied(), lambda column: column.name),
    "{new_values}": _each(_copied(), _inserted),
    "{end_params}": _each(ENDS, _end_parameter),
    "{end_params_alike}": _each(ENDS, lambda column: f"p_{column.name} {column.type}"),
    "{end_args}": _each(ENDS, lambda column: f"p_{column.name}"),
    "{end_args_alike}": _each(ENDS, lambda column: f"p_{column.name}[1]"),
    "{end_names}": _each(ENDS, lambda column: column.name),
    "{end_arrays}": _each(ENDS, lambda column: f"array_agg({column.name})"),
    "{end_sizes}": _each(ENDS, lambda column: f"cardinality(p_{column.name})"),
    "{end_expanded}": " ".join(f"p_{name} := {{schema}}.expand(p_{name}, v_count);" for name, *_ in ENDS),
    "{unless_null}": ", ".join(f"{name} = coalesce(u.{name}, j.{name})" for name in _KEPT_IF_NULL),
    "{finished_values}": _ended("g.", "a."),
    "{finished_values_alike}": _ended("", "p_"),
}
"""What stands for these lists in the texts of statements and functions."""
