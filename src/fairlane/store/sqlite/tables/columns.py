"""The columns of all tables that several verbs read or write, and the SQL made of them.

To add a field of a job that is stored as it is: add the column in a migration, and its name to
`PLAIN_COLUMNS`. The SELECT lists, INSERT lists, placeholders and both directions of the conversion
(`job_rows`) follow. A field of a settlement goes into `SETTLEMENT_COLUMNS` in the same way, a filter of
`find` and `tally` into `FILTERS`. Fields that are stored in another form stand in the tuples beside those
lists, and in `job_rows`.

All lists are read at import: no call pays for them.
"""

from __future__ import annotations

from typing import Final

# ── jobs ──────────────────────────────────────────────────────────────────────

NAME_COLUMNS: Final = ("tenant", "queue", "task")
PLAIN_COLUMNS: Final = (
    "payload",
    "checksum",
    "version",
    "priority",
    "dedup_key",
    "dedup_until",
    "max_attempts",
    "timeout",
    "at_most_once",
    "metadata",
    "created_by",
    "stuck_after",
    "on_stuck",
)
"""Columns of `body` with the same value as the field of the same name, in `NewJob` and in `JobRecord`."""

BODY_COLUMNS: Final = (
    *("seq", "id", "enqueued_at", "expires_at", "parent_id", "tags"),
    *("idempotency_key", "correlation_id"),  # NULL if the job's own id stands for them
    *NAME_COLUMNS,
    *PLAIN_COLUMNS,
)
EDITABLE_COLUMNS: Final = tuple(name for name in BODY_COLUMNS if name not in {"seq", "id", *NAME_COLUMNS})

ATTEMPT_COLUMNS: Final = ("run_at", "sort_key", "attempt", "fence")
SETTLEMENT_COLUMNS: Final = (
    "because",
    "failures",
    "crashes",
    "crashes_alone",
    "snoozes",
    "is_suspect",
    "result",
)
"""Columns that a settlement replaces, with the value of its field of the same name."""

STATUS_COLUMNS: Final = ("state", "settled_at", "attempts", *ATTEMPT_COLUMNS, *SETTLEMENT_COLUMNS)
"""What `live`, `history` and `dead` have in common."""

CLAIM_COLUMNS: Final = ("worker", "started_at", "lease_until", "is_cancel_asked", "progress")
"""What only `live` has of a record."""

LIVE_COLUMNS: Final = (*STATUS_COLUMNS, *CLAIM_COLUMNS)
LIVE_ONLY_COLUMNS: Final = ("gate", "charged")
"""What `live` has of a claim and no record has."""

FILTERS: Final = ("tenant", "queue", "task", "parent_id", "created_by")
"""Columns of `body` that `find` and `tally` compare with a parameter of the same name; NULL matches all."""

# ── dead letters ──────────────────────────────────────────────────────────────

NEW_LETTER_COLUMNS: Final = (
    *("seq", "id", "settled_at", *NAME_COLUMNS),
    *("error_class", "fingerprint"),
)
"""What `letter` copies from a job that dies, so that filters and tallies read no wide row."""

REVIEW_COLUMNS: Final = ("review", "is_acknowledged", "notes", "decided_at", "new_job", "record")
"""What people decide. `record` holds all of it; the others are what statements compare."""

LETTER_COLUMNS: Final = ("error_class", "fingerprint", "review", "record")
"""What `letter` has of a dead letter and the job's own tables have not."""

LETTER_FILTERS: Final = (
    *NAME_COLUMNS,
    *("error_class", "fingerprint", "review", "is_acknowledged"),
)
"""Columns of `letter` that the facet of dead letters compares as `FILTERS` are."""

# ── tenant queues ─────────────────────────────────────────────────────────────

TENANT_QUEUE_COLUMNS: Final = (
    *("tenant_queue", "queue", "tenant"),
    *("vt", "ready_since", "is_ready"),  # these three and the last seven are in an index or rarely change
    *("open_strands", "delayed", "ready"),
    *("running", "next_allowed_at", "rate_id", "parked", "parked_until", "parked_vt", "parked_since"),
)
STRAND_COLUMNS: Final = (
    *("strand", "tenant_queue", "queue", "task"),
    *("jobs", "ready"),  # the only ones without an index
    *("head_key", "head_id", "parked", "gate", "parked_until", "parked_vt", "parked_since"),
)

# ── SQL made of the lists ─────────────────────────────────────────────────────


def select(table: str, *columns: str) -> str:
    """Return a SELECT list.

    >>> select("body", "seq", "id")
    'body.seq, body.id'
    """
    return ", ".join(f"{table}.{name}" for name in columns)


def insert(*columns: str) -> str:
    """Return the columns and values of an INSERT.

    >>> insert("seq", "id")
    '(seq, id) VALUES (?1, ?2)'
    """
    values = ", ".join(f"?{position}" for position, _ in enumerate(columns, 1))
    return f"({', '.join(columns)}) VALUES ({values})"


def assign(*columns: str) -> str:
    """Return the assignments of an UPDATE whose first parameter is the key.

    >>> assign("state", "fence")
    'state = ?2, fence = ?3'
    """
    return ", ".join(f"{name} = ?{position}" for position, name in enumerate(columns, 2))


def filters(table: str, *columns: str) -> str:
    """Return comparisons with parameters of the same name; NULL matches all.

    >>> filters("body", "queue")
    '(:queue IS NULL OR body.queue = :queue)'
    """
    return " AND ".join(f"(:{name} IS NULL OR {table}.{name} = :{name})" for name in columns)


SQL: Final = {
    "{body}": select("body", *BODY_COLUMNS),
    "{live}": select("live", *LIVE_COLUMNS),
    "{history}": select("history", *STATUS_COLUMNS),
    "{dead}": select("dead", *STATUS_COLUMNS),
    "{live_job}": ", ".join(
        (select("body", *BODY_COLUMNS), select("live", *LIVE_COLUMNS, "strand", *LIVE_ONLY_COLUMNS))
    ),
    "{insert_body}": insert(*BODY_COLUMNS),
    "{insert_history}": insert("seq", *STATUS_COLUMNS),
    "{insert_dead}": insert("seq", *STATUS_COLUMNS),
    "{letter}": select("letter", *LETTER_COLUMNS),
    "{insert_letter}": insert(*NEW_LETTER_COLUMNS),
    "{assign_review}": assign(*REVIEW_COLUMNS),
    "{assign_body}": assign(*EDITABLE_COLUMNS),
    "{assign_status}": assign(*STATUS_COLUMNS),
    "{assign_live}": assign(*LIVE_COLUMNS, "expires_at", *LIVE_ONLY_COLUMNS),
    "{filters}": filters("body", *FILTERS),
    "{letter_filters}": filters("letter", *LETTER_FILTERS),
    "{tenant_queue}": select("tenant_queue", *TENANT_QUEUE_COLUMNS),
    "{strand}": select("strand", *STRAND_COLUMNS),
    "{insert_tenant_queue}": insert(*TENANT_QUEUE_COLUMNS),
    "{insert_strand}": insert(*STRAND_COLUMNS),
    "{assign_tenant_queue}": assign(*TENANT_QUEUE_COLUMNS[3:]),
    "{assign_strand}": assign(*STRAND_COLUMNS[4:]),
}
"""What a placeholder in a statement stands for."""
