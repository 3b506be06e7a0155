"""Load the Lua scripts: each file with the library files it uses and the constants it names.

Lua never spells a state, a bound, a key or the position of a field. They are rendered in here, from where
they are decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

import msgspec

from fairlane.model.lifecycle.states import Because, Event, State, because, target
from fairlane.model.policy.amounts import LARGEST
from fairlane.model.policy.budget import CLAIMS_KEPT, MAX_SPENDERS, OTHERS, SPEND_KEPT
from fairlane.model.scheduling.fairness import FIRST_ESTIMATE, SCALE
from fairlane.model.scheduling.priority import STEP
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.breakers import MAX_OPEN_BREAKERS
from fairlane.store.contract.claims import MAX_DUE, MAX_PARKED, MAX_UNPARKED
from fairlane.store.contract.mailbox import MAX_QUESTIONS
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.breaker import BREAKER_CONSTANTS
from fairlane.store.redis.records.entries import ENTRY_CONSTANTS
from fairlane.store.redis.records.head import HEAD_CONSTANTS
from fairlane.store.redis.records.job import ATTEMPT_CONSTANTS, BODY_CONSTANTS, NUMBERS
from fairlane.store.redis.records.layout import NEW_JOB_LAYOUT, ON_DUPLICATE, SETTLEMENT_LAYOUT
from fairlane.store.redis.records.letter import LETTER_CONSTANTS

STAGED_TTL_MS: Final = 60_000
"""Time to live of a batch that is being sent, and of a reply that nobody fetches."""

MAX_JOBS_PER_SCRIPT: Final = 40
"""Jobs that one script settles, starts or updates at most, and promotes per queue: other clients wait."""

_TENANT_QUEUE: Final = ">I4I4I8I4I4I4I4I4I4I2"
_STRAND: Final = "I4I4dc16I2c0"


def _positions(*names: str) -> dict[str, int]:
    """Number the fields of a Lua list, from 1."""
    return {name: number for number, name in enumerate(names, 1)}


_CONSTANTS: Final[dict[str, int | str]] = {
    # states and events
    **{state.name: number for state, number in NUMBERS.items()},
    "STATES": len(State),
    "DUE_TO": NUMBERS[target(Event.DUE)],
    "CLAIM_TO": NUMBERS[target(Event.CLAIM)],
    "EXPIRE_TO": NUMBERS[target(Event.EXPIRE)],
    "EXPIRED": because(Because.EXPIRED),
    "LATER": because(Because.TIME),
    # the model's values
    "SYSTEM": SYSTEM,
    "EVERYONE": "tenant *",
    "STEP": STEP,
    "STRIDE": SCALE,
    "FIRST_ESTIMATE": FIRST_ESTIMATE,
    # bounds
    "MAX_DUE": MAX_DUE,
    "MAX_SPENDERS": MAX_SPENDERS,
    "OTHERS": OTHERS,
    "SPEND_KEPT": SPEND_KEPT,
    "CLAIMS_KEPT": CLAIMS_KEPT,
    "LARGEST_AMOUNT": LARGEST,
    "MAX_OPEN_BREAKERS": MAX_OPEN_BREAKERS,
    "MAX_PARKED": MAX_PARKED,
    "MAX_QUESTIONS": MAX_QUESTIONS,
    "MAX_UNPARKED": MAX_UNPARKED,
    "UNPARK_STEP": 50,  # what one script unparks at a time in a queue, members of changed groups included
    "MAX_JOBS_PER_SCRIPT": MAX_JOBS_PER_SCRIPT,
    "MAX_ARGUMENTS": 4_000,  # of one call: Lua's stack holds some 8,000
    "HINT_TTL_MS": 3_600_000,  # of a worker's hints: workers come and go
    "STAGED_TTL_MS": STAGED_TTL_MS,
    # records that are packed by hand
    **HEAD_CONSTANTS,
    **BODY_CONSTANTS,
    **ATTEMPT_CONSTANTS,
    **NEW_JOB_LAYOUT.constants,
    **{f"ON_DUPLICATE_{name.upper()}": number for name, number in ON_DUPLICATE.items()},
    **SETTLEMENT_LAYOUT.constants,
    **LETTER_CONSTANTS,
    **ENTRY_CONSTANTS,
    **BREAKER_CONSTANTS,
    "TENANT_QUEUE_FORMAT": _TENANT_QUEUE,
    "STRAND_FORMAT": f">s{_STRAND}",
    "STORED_STRAND_FORMAT": f">{_STRAND}",
    "ONE_STRAND_FORMAT": f"{_TENANT_QUEUE}s{_STRAND}",
    "PREFETCHED_FORMAT": ">c16d",
    "PREFETCHED_SIZE": 24,
    "PREFETCH": 7,  # jobs after its head that a strand's record gets at a time
    "MAX_INLINE_STRANDS": 16,  # in the record of a tenant queue
    "IS_WIDE": 2**16 - 1,  # instead of the number of strands: they are stored apart
    "INDEX_PLACE_SIZE": 16,  # first bytes of the record, which are also its place in the ready index
    "VT_WORD": 2**32,
    "VT_ZERO": 2**30,  # the upper word of a vt of 0; corrections may take a vt below (S41)
    "CLAIMED_HEAD_START": f"\\0\\{NUMBERS[target(Event.CLAIM)]}",  # how a head begins: not new, running
    "NIL": "\\192",  # of msgpack
    "NO_ID": "\\0" * 16,
    # positions in lists
    **_positions(
        "JOB_COUNT", "READY_COUNT", "HEAD_KEY", "HEAD_ID", "PARKED", "JOB_SET", "PREFETCHED", "PREFETCHED_AT"
    ),  # of a strand
    **_positions(
        "REASON",
        "SUBJECT",
        "UNTIL",  # so far a block
        "PARK_VT",
        "PARK_SINCE",
        "PARK_GENERATION",
        "PARK_RATE_GENERATION",
    ),  # of a park
    **_positions("SCORE", "TIE_BREAK", "MEMBER", "STORED_SCORE"),  # of an entry of a sorted set
    **_positions("NEXT_ALLOWED_AT", "RATE_ID"),  # of the state of a rate
    **_positions("CHARGE_GATE", "CHARGE_COST"),
    **_positions("CHANGED_GROUP", "CHANGED_GENERATION", "CHANGED_AT"),
    **_positions("KEY_JOB_ID", "KEY_FINGERPRINT", "KEY_STATE", "KEY_SETTLED_AT", "KEY_REPLACED"),
    **_positions("BEAT_STATE", "BEAT_STARTED_AT", "BEAT_AT"),
    **_positions("LEAD_WORKER", "LEAD_UNTIL"),
    **_positions("ASKED_WORKER", "ASKED_KIND", "ASKED_AT", "ASKED_UNTIL", "ANSWERED_AT"),  # of a question
    **_positions("REQUEST_QUEUE", "REQUEST_LIMIT"),  # of a queue request
    **_positions("RENEWAL_FENCE", "RENEWAL_PROGRESS", "RENEWAL_METADATA", "RENEWAL_SPENT"),
    **_positions(
        "ACCOUNT_STARTS_AT",
        "ACCOUNT_ENDS_AT",
        "ACCOUNT_SPENT",
        "ACCOUNT_RESERVED",
        "ACCOUNT_TOLD",
        "ACCOUNT_IS_WAITED_FOR",
    ),  # of a budget
    **_positions(
        "CLAIM_BUDGET",
        "CLAIM_ACCOUNT",
        "CLAIM_TASK",
        "CLAIM_TENANT",
        "CLAIM_CREATED_BY",
        "CLAIM_ESTIMATE",
        "CLAIM_SPENT",
        "CLAIM_PERIOD",
        "CLAIM_ENDED_AT",
    ),  # of what a claim holds of a budget
}

_NEED_MEMORY: Final = frozenset({"jobs/enqueue", "dead/reprocess", "history/restore"})
"""What a full server refuses, as it refuses parts of a batch. It must run all else: that frees memory."""

_BASE: Final = ("base/buffer", "base/sorted_set", "base/hints", "base/commit")
_USES: Final = re.compile(r"-- uses:(.*)")
_KEY: Final = re.compile(r"\$(\w+)")
_CONSTANT: Final = re.compile(r"\b[A-Z][A-Z_]+\b")


class Script(msgspec.Struct, frozen=True):
    """A script, and the hash under which a server that has it knows it."""

    text: str
    sha: str


@cache
def load(name: str) -> Script:
    """Return the script of a verb, as "claims/settle"."""
    base = (_read(f"lib/{part}") for part in _BASE)
    parts = (_read(part) for part in _with_uses((name,)))
    # A script makes its functions anew each time it runs, and Lua searches each name that a function uses
    # among all names of its level so far. Two levels save 20 µs; a level may use 60 names of the one above.
    text = "\n".join((*base, "return (function()", *parts, "end)()"))
    text = _KEY.sub(lambda found: NAMES[found[1]], text)
    # As values, not as locals: Lua allows 200 of those, and a script runs from its first line each time.
    values = _values() | {"IS_BATCH_STEP": "true" if name == "jobs/batch_step" else "false"}
    text = _CONSTANT.sub(lambda found: values.get(found[0], found[0]), text)
    text = f"#!lua flags={'' if name in _NEED_MEMORY else 'allow-oom'}\n{text}"
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def _with_uses(names: Iterable[str]) -> list[str]:
    """Return files in the order in which Lua must read them: each after all that it uses."""
    ordered: dict[str, None] = {}
    for name in names:
        uses = _USES.match(_read(name))
        if uses is None:
            message = f"{name}.lua does not say which files it uses"
            raise ValueError(message)
        ordered |= dict.fromkeys(_with_uses(f"lib/{part}" for part in uses[1].split()))
        ordered[name] = None
    return list(ordered)


@cache
def _read(name: str) -> str:
    return (files("fairlane.store.redis") / "scripts" / f"{name}.lua").read_text(encoding="utf-8")


@cache
def _values() -> dict[str, str]:
    return {
        name: f"'{value}'" if isinstance(value, str) else str(value) for name, value in _CONSTANTS.items()
    }
