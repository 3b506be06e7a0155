"""`fairlane audit`: who did what, and whether anybody has changed that record."""

from __future__ import annotations

import json

import apsw
import pytest

from fairlane.model.instants import to_datetime
from tests.cli.shell import Shell
from tests.contract.world import World
from tests.duties.journals.crew import sealer, settle_down

KEY = "a key of sixteen bytes"


def seal(store: Shell, key: str | None = KEY) -> None:
    """Let a worker seal what waits."""

    async def work(world: World) -> None:
        await settle_down(world, sealer(key=None if key is None else key.encode()))

    store.in_store(work)


@pytest.fixture
def audited(store: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Two sealed entries and one that is not sealed yet; the key is in the environment."""
    monkeypatch.setenv("FAIRLANE_AUDIT_KEY", KEY)
    hour = ("--note", "password=hunter2xyz", "--for", "1h")
    store.run("--as", "ann@example.org", "pause", "queue", "bulk", *hour)
    store.clock.advance(1)
    store.run("--as", "ben", "limits", "tenant", "acme", "--running", "3", "--note", "too fast")
    store.clock.advance(1)
    seal(store)
    store.run("--as", "ann@example.org", "resume", "queue", "bulk", "--note", "bank is back")
    return store


def test_what_was_done_is_listed_newest_first(audited: Shell) -> None:
    """Who, what, to what, what changed and why; secrets are redacted."""
    head, *rows = audited.output_of("audit").splitlines()
    assert head.split() == ["NUMBER", "AT", "ACTOR", "DID", "SUBJECT", "TENANT", "CHANGE", "NOTE"]
    assert [row.split("  ")[0] for row in rows] == ["not sealed", "2", "1"]
    assert "ann@example.org  queues.resume  queue bulk" in rows[0]
    assert "ben              tenants.set    tenant acme  acme" in rows[1]
    assert rows[1].endswith(
        "override: - → (change (queue_limits (* (on_full warn, running 3))), note too fast)  too fast"
    )
    assert "hunter2xyz" not in rows[2]
    assert rows[2].endswith("password=[redacted]")


def test_programs_get_every_field(audited: Shell) -> None:
    """An object a line."""
    last, _, first = audited.run("--json", "audit", "list").objects
    assert (last["number"], last["is_sealed"], first["number"], first["is_sealed"]) == (None, False, 1, True)
    assert (first["kind"], first["actor"], first["origin"]) == ("queues.pause", "ann@example.org", "cli")
    assert (first["note"], first["after"]["paused"]["who"]) == ("password=[redacted]", "ann@example.org")
    assert first["tenant"] is None


def test_every_filter_narrows_the_list(audited: Shell) -> None:
    """By kind, subject, tenant and time, page by page."""
    now = to_datetime(audited.clock.now()).isoformat()

    def found(*options: str) -> list[str]:
        return [one["kind"] for one in audited.run("--json", "audit", "list", *options).objects]

    assert found("--kind", "queues.pause") == ["queues.pause"]
    assert found("--kind", "queues.pause", "--kind", "tenants.set") == ["tenants.set", "queues.pause"]
    assert found("--subject", "queue bulk") == ["queues.resume", "queues.pause"]
    assert found("--tenant", "acme") == ["tenants.set"]
    assert found("--until", now) == ["tenants.set", "queues.pause"]
    assert found("--since", now) == ["queues.resume"]
    first = audited.run("--json", "audit", "list", "--limit", "2")
    rest = found("--cursor", first.err.split()[-1])
    assert [one["kind"] for one in first.objects] + rest == ["queues.resume", "tenants.set", "queues.pause"]
    assert audited.run("audit", "list", "--cursor", "x").code == 2
    assert "No entry matches." in audited.output_of("audit", "list", "--kind", "nobody")


def test_one_entry_is_shown_in_full(audited: Shell) -> None:
    """By its number; one that is not stored is exit code 3."""
    out = audited.output_of("audit", "show", "2")
    assert "actor    ben\nfrom     cli\ndid      tenants.set\nsubject  tenant acme\ntenant   acme" in out
    assert "note     too fast" in out
    (shown,) = audited.run("--json", "audit", "show", "2").objects
    assert len(shown["seal"]) == 64
    missing = audited.run("audit", "show", "9")
    assert (missing.code, missing.err) == (3, "Error: no entry 9\n")


def test_a_chain_that_nobody_touched_verifies(audited: Shell) -> None:
    """Exit code 0."""
    assert audited.output_of("audit", "verify") == (
        "The audit is intact.\n2 sealed entries, 1 to 2; 1 not sealed yet.\n"
    )
    (told,) = audited.run("--json", "audit", "verify").objects
    assert (told["is_intact"], told["sealed"], told["unsealed"], told["is_keyed"]) == (True, 2, 1, True)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            (
                "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), 'ann@', 'eve@') AS BLOB) "
                "WHERE number = 1"
            ),
            "entry 1: the entry was changed or moved",
        ),
        ("DELETE FROM entry WHERE number = 1", "entry 1: entries 1 to 1 are missing"),
    ],
)
def test_whoever_writes_into_the_store_is_found(audited: Shell, sql: str, words: str) -> None:
    """Exit code 1."""
    db = apsw.Connection(str(audited.file))
    db.execute(sql)
    assert db.changes() == 1
    db.close()
    ran = audited.run("audit", "verify")
    assert ran.code == 1
    assert ran.out.startswith("The audit has 1 problem(s):\n")
    assert words in ran.out
    (told,) = audited.run("--json", "audit", "verify").objects
    assert told["problems"][0]["number"] == 1


def test_the_key_is_needed(audited: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 5; it is never shown."""
    monkeypatch.delenv("FAIRLANE_AUDIT_KEY")
    ran = audited.run("audit", "verify")
    assert ran.code == 5
    assert "audit.key: the entries so far were sealed under a key" in ran.err
    assert KEY not in ran.err


def test_without_a_key_it_is_called_a_checksum(store: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where the key came later, that is said."""
    store.run("pause", "queue", "bulk", "--note", "x")
    seal(store, key=None)
    assert "There is no key, so this is a checksum" in store.output_of("audit", "verify")
    store.run("resume", "queue", "bulk")
    seal(store)
    monkeypatch.setenv("FAIRLANE_AUDIT_KEY", KEY)
    assert "Entries before 2 were sealed without a key." in store.output_of("audit", "verify")


def test_entries_are_exported_oldest_first(audited: Shell) -> None:
    """Into a file or to standard output."""
    done = audited.run("audit", "export", "audit.jsonl")
    assert (done.code, done.err) == (0, "3 entries written.\n")
    lines = (audited.folder / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, None]
    assert len(audited.run("audit", "export", "-", "--tenant", "acme").objects) == 1
    assert audited.run("audit", "export", "nowhere/x").code == 1


def test_nothing_was_done_yet(store: Shell) -> None:
    """An empty audit is intact."""
    assert store.output_of("audit") == "No entry matches.\n"
    assert store.output_of("audit", "verify") == "The audit is intact.\n0 sealed entries; 0 not sealed yet.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("cancel", "{id}", "--note", "why"),
        ("run-now", "{id}", "--note", "why"),
        ("jobs", "condemn", "{id}", "--note", "why"),
        ("jobs", "edit", "{id}", "--priority", "5", "--note", "why"),
        ("pause", "tenant", "acme", "--note", "why"),
        ("close", "task", "noop", "--note", "why"),
        ("limits", "queue", "bulk", "--max-waiting", "5", "--note", "why"),
        ("tenants", "purge", "acme", "--note", "why", "--yes"),
        ("tenants", "forget", "acme", "--note", "why", "--yes"),
        ("drain", "bulk", "--note", "why"),
    ],
)
def test_every_command_that_changes_something_takes_a_note_and_is_audited(
    store: Shell, words: tuple[str, ...]
) -> None:
    """With who did it."""
    job = store.in_store(lambda world: world.enqueue(delay=60_000_000))
    assert store.run("--as", "ann", *(word.format(id=job.id) for word in words)).code == 0
    entries = store.run("--json", "audit", "list").objects
    assert {(one["actor"], one["origin"], one["note"]) for one in entries} == {("ann", "cli", "why")}
