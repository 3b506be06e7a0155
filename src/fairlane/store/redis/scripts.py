"""Load the Lua scripts, one file per verb, with the parts it uses and the words of the model rendered in.

Lua never spells a state, a bound or a key: they are written here, from where they are decided.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

import msgspec

from fairlane.model.fairness import FIRST_ESTIMATE, SCALE
from fairlane.model.job import ATTEMPTS_KEPT
from fairlane.model.lifecycle import Because, Event, State, because, target
from fairlane.model.priority import STEP
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.claims import DUE_MOST, PARK_MOST, WAKE_MOST
from fairlane.store.redis.forms import ENDING, ITEM
from fairlane.store.redis.heads import FIELDS, FORMS
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import NUMBERS

STAGED_LASTS: Final = 60_000
"""How many milliseconds a batch that is being sent, or an answer that nobody fetches, stays."""

CLAIM_MOST: Final = 40
"""How many jobs one script takes in, settles, hands out, or makes ready at most: it holds all others up."""

_TURN: Final = ">I4I4I8I4I4I4I4I4I4I2"
_STRAND: Final = "I4I4dc16I2c0"

_CONSTANTS: Final[dict[str, int | str]] = {
    **{state.name: number for state, number in NUMBERS.items()},
    **FIELDS,
    **FORMS,
    **ITEM.words,
    **ENDING.words,
    "STATES": len(State),
    "DUE_TO": NUMBERS[target(Event.DUE)],
    "CLAIM_TO": NUMBERS[target(Event.CLAIM)],
    "EXPIRE_TO": NUMBERS[target(Event.EXPIRE)],
    "EXPIRED": because(Because.EXPIRED),
    "LATER": because(Because.TIME),
    "NIL": "\\192",  # of msgpack
    "SYSTEM": SYSTEM,
    "EVERYONE": "tenant *",
    "STEP": STEP,
    "STRIDE": SCALE,
    "FIRST_ESTIMATE": FIRST_ESTIMATE,
    "ATTEMPTS_KEPT": ATTEMPTS_KEPT,
    "DUE_MOST": DUE_MOST,
    "PARK_MOST": PARK_MOST,
    "WAKE_MOST": WAKE_MOST,
    "WAKE_STEP": 50,
    "CLAIM_MOST": CLAIM_MOST,
    "HINT_LASTS": 3_600_000,
    "STAGED_LASTS": STAGED_LASTS,
    "CHUNK": 4_000,  # Lua's own stack holds no more arguments than some 8,000
    "WORD": 2**32,
    "ZERO": 2**30,  # the upper word of a clock at 0; clocks may be below (S41: corrections)
    "TURN": _TURN,
    "STRAND": f">s{_STRAND}",
    "LONE_STRAND": f">{_STRAND}",
    "TURN_OF_ONE": f"{_TURN}s{_STRAND}",
    "HEIR": ">c16d",
    "HEIR_SIZE": 24,
    "HEIRS": 7,  # jobs after its head that a strand's record gets at a time
    "INLINE_MOST": 16,  # strands that the record of a turn has at most
    "WIDE": 2**16 - 1,  # in its place for their number: it has none, they are stored by themselves
    "PLACE": 16,  # bytes of a turn's record that are also its place in the ready index, before the tenant
    "NO_ID": "\\0" * 16,
    "CLAIMED": f"\\0\\{NUMBERS[target(Event.CLAIM)]}",  # how a head begins: not short, running
}

_BRING_IN: Final = frozenset({"enqueue"})
"""What a full server refuses, as it does parts of a batch. All else it must run: that makes room again."""

_USES: Final = re.compile(r"-- uses:(.*)")
_KEY: Final = re.compile(r"\$(\w+)")
_WORD: Final = re.compile(r"\b[A-Z][A-Z_]+\b")


class Script(msgspec.Struct, frozen=True):
    """A script, and the name under which a server that has it knows it."""

    text: str
    sha: str


@cache
def load(name: str) -> Script:
    """Give the script of a verb."""
    folder = files("fairlane.store.redis") / "scripts"
    own = (folder / f"{name}.lua").read_text(encoding="utf-8")
    uses = _USES.match(own)
    if uses is None:
        message = f"{name}.lua does not say which parts it uses"
        raise ValueError(message)
    parts = [(folder / "lib" / f"{part}.lua").read_text(encoding="utf-8") for part in uses[1].split()]
    book = (folder / "lib" / "book.lua").read_text(encoding="utf-8")
    # A script makes its functions anew each time it runs, and Lua looks for each name that one uses among all
    # that its level has so far: two levels save 20 µs a script. It allows 60 names from the level above.
    text = "\n".join((book, "return (function()", *parts, own, "end)()"))
    text = _KEY.sub(lambda found: NAMES[found[1]], text)
    # As values, not as locals: Lua has 200 of those, and a script is run from its first line each time.
    values = _values() | {"IS_FOLDING": "true" if name == "fold" else "false"}
    text = _WORD.sub(lambda found: values.get(found[0], found[0]), text)
    text = f"#!lua flags={'' if name in _BRING_IN else 'allow-oom'}\n{text}"
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def _values() -> dict[str, str]:
    quoted = {word: f"'{value}'" for word, value in _CONSTANTS.items() if isinstance(value, str)}
    return {word: str(value) for word, value in _CONSTANTS.items()} | quoted
