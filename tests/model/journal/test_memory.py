"""What a duty remembers comes back as it was, also through a version that knows less of it (S67)."""

from __future__ import annotations

import msgspec

from fairlane.model.journal.entries import NewEntry, PendingEntry
from fairlane.model.journal.folding import Fold
from fairlane.model.journal.memory import (
    FORMAT,
    AuditMemory,
    EventMemory,
    Subscriber,
    decode_memory,
    encode_memory,
)
from fairlane.model.journal.sealing import Checkpoint, Verifier, checkpoint_at, seal_all

KEY, OTHER = b"a key of some length", b"another key of that length"
ENTRY = NewEntry(kind="dead_letter", tenant="acme", subject="f00", count=3, body=b'{"task":"mail"}')


def test_a_new_journal_has_an_empty_memory() -> None:
    """Nothing is stored before the first pass."""
    assert decode_memory(b"", EventMemory) == EventMemory()
    assert decode_memory(b"", AuditMemory) == AuditMemory()


def test_all_that_is_remembered_of_the_events_comes_back() -> None:
    """With folds that have counted something and folds that have not, of tenants and of none."""
    memory = EventMemory(
        folds={
            ("dead_letter", "acme", "f00"): Fold(20, 5, 12, ENTRY),
            ("worker_lost", None, "w1"): Fold(30),
        },
        subscribers={"alert": Subscriber(7, 5)},
        is_alerting=True,
        expiry_looked_at=9,
        lost=4,
    )
    assert decode_memory(encode_memory(memory), EventMemory) == memory


def test_all_that_is_remembered_of_the_audit_comes_back() -> None:
    """The chain goes on from there."""
    memory = AuditMemory(seal=b"s", checkpoint=checkpoint_at(5, b"c", KEY), keyed_from=6, key_mark=b"m")
    assert decode_memory(encode_memory(memory), AuditMemory) == memory


def test_an_older_version_keeps_what_it_does_not_know() -> None:
    """A leader of the newer version finds it again."""
    newer = msgspec.msgpack.encode({"format": FORMAT, "lost": 2, "colour": ["red", {"a": 1}]})
    older = decode_memory(newer, EventMemory)
    assert older is not None
    stored = encode_memory(msgspec.structs.replace(older, lost=3))
    fields = msgspec.msgpack.decode(stored)
    assert (fields["lost"], fields["colour"], fields["format"]) == (3, ["red", {"a": 1}], FORMAT)


def test_a_format_that_could_only_be_misread_is_refused() -> None:
    """Its entries wait for a leader that knows it."""
    newer = msgspec.msgpack.encode({"format": FORMAT + 1, "folds": "something else"})
    assert decode_memory(newer, EventMemory) is None


# ── the key of the audit ─────────────────────────────────────────────────────


def test_without_a_key_the_chain_is_of_checksums() -> None:
    """As long as no process has one."""
    memory = AuditMemory()
    assert memory.problem_with(None) is None
    assert memory.with_key(None, 5) is memory
    assert not memory.is_keyed


def test_a_chain_with_a_key_goes_on_under_that_key_only() -> None:
    """A process without it, or with another, must leave it alone."""
    memory = AuditMemory().with_key(KEY, 5)
    assert (memory.is_keyed, memory.keyed_from) == (True, 6)
    assert memory.problem_with(KEY) is None
    assert memory.with_key(KEY, 9) is memory
    assert memory.problem_with(None) == (
        "the entries so far were sealed under a key, and this process has none"
    )
    assert memory.problem_with(OTHER) == "the entries so far were sealed under another key"


def test_what_was_sealed_before_there_was_a_key_is_verified_without_one() -> None:
    """And the checkpoint is sealed anew, so that nobody without the key can move it."""
    pending = [PendingEntry(place, 5, ENTRY) for place in range(4)]
    before = seal_all(pending[:3], 0, b"", None)
    memory = AuditMemory(seal=before[-1].seal, checkpoint=checkpoint_at(1, before[0].seal, None))
    memory = memory.with_key(KEY, before[-1].number)
    after = seal_all(pending[3:], 3, memory.seal, KEY)
    verifier = Verifier(memory.checkpoint, KEY, memory.keyed_from)
    assert [*verifier.begin(), *verifier.read([*before[1:], *after])] == []
    assert [*verifier.end(4, after[-1].seal)] == []
    pretended = seal_all(pending[3:], 3, memory.seal, None)
    verifier = Verifier(memory.checkpoint, KEY, memory.keyed_from)
    assert [finding.number for finding in verifier.read([*before[1:], *pretended])] == [4]


def test_a_chain_from_its_beginning_needs_no_checkpoint() -> None:
    """There is none to be sealed anew."""
    assert AuditMemory().with_key(KEY, 0).checkpoint == Checkpoint()
