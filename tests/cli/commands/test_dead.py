"""`fairlane dead`: look at dead letters, and decide about one of them or all that match."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from fairlane.app.task.record import task_record_of
from fairlane.cli.application import load
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import to_datetime
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import checksum, decode_arguments
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.contract.journal import PendingRequest
from tests.cli.shell import Shell
from tests.contract.breakers.scene import guard
from tests.contract.world import ALL, PAYLOAD, World, payload, ruined

NOBODY = UUID(int=9)
SHOP = """
from fairlane import Fairlane

app = Fairlane({url!r}, config={{}})

@app.task(name="bill", sensitive=["iban"])
def bill(order: int, iban: str = "", code: str = "") -> None: ...
"""


async def die(
    world: World, number: int = 1, *, message: str = "no line", tenant: str = "acme", **values: Any
) -> list[UUID]:
    """Let so many jobs die, one second after the other."""
    ids = []
    values = {"payload": PAYLOAD, **values}
    for _ in range(number):
        job = await world.enqueue(tenant, **values, checksum=checksum(values["payload"]))
        await world.run(ruined(ErrorClass.NON_RETRYABLE, message), job.queue)
        world.advance(1)
        ids.append(job.id)
    return ids


def letter_of(store: Shell, id: UUID) -> DeadLetter:
    """Return a stored letter."""
    found = store.in_store(lambda world: world.letter(id))
    assert found is not None
    return found


def review_of(store: Shell, id: UUID) -> str:
    """Return what was decided about a letter."""
    return letter_of(store, id).review.review


def audited(store: Shell) -> list[tuple[str, dict[str, Any]]]:
    """Return what waits in the audit."""

    async def read(world: World) -> list[tuple[str, dict[str, Any]]]:
        reply = await world.store.journal.pending(PendingRequest(scope=ALL, journal="audit"))
        return [(one.entry.kind, json.loads(one.entry.body)) for one in reply.entries]

    return store.in_store(read)


@pytest.fixture
def letters(store: Shell) -> list[UUID]:
    """Three letters of one cause, and one of another tenant and cause."""
    return store.in_store(_both)


async def _both(world: World) -> list[UUID]:
    mine = await die(world, 3)
    return [*mine, *await die(world, 1, message="disk full", tenant="globex", task="mail", queue="bulk")]


# ── looking ──────────────────────────────────────────────────────────────────


def test_letters_that_await_a_decision_are_listed_latest_death_first(
    store: Shell, letters: list[UUID]
) -> None:
    """The whole table; decided ones are there on request."""
    assert store.run("dead", "resolve", str(letters[1])).code == 0
    head, *rows = store.output_of("dead").splitlines()
    assert head.split() == ["ID", "DIED", "REVIEW", "TENANT", "TASK", "ERROR"]
    assert [row.split()[0] for row in rows] == [str(letters[at]) for at in (3, 2, 0)]
    assert rows[0].split(maxsplit=3)[3].startswith("pending  globex  mail  ValueError: disk full")
    shown = store.run("--json", "dead", "list", "--review", "all").objects
    assert [one["review"] for one in shown] == ["pending", "pending", "resolved", "pending"]


def test_every_filter_narrows_the_list(store: Shell, letters: list[UUID]) -> None:
    """By tenant, queue, task, class, cause, review, acknowledgement and time of death."""
    store.run("dead", "ack", str(letters[0]))
    cause = letter_of(store, letters[3]).fingerprint
    died_at = to_datetime(letter_of(store, letters[3]).job.settled_at or 0).isoformat()

    def found(*options: str) -> list[str]:
        return [one["id"] for one in store.run("--json", "dead", "list", *options).objects]

    only_last = [str(letters[3])]
    for options in (
        ("--tenant", "globex"),
        ("--queue", "bulk"),
        ("--task", "mail"),
        ("--fingerprint", cause),
        ("--since", died_at),
    ):
        assert found(*options) == only_last, options
    assert found("--acknowledged") == [str(letters[0])]
    assert found("--unacknowledged", "--until", died_at) == [str(letters[2]), str(letters[1])]
    assert found("--class", "timeout") == []
    assert "No dead letter matches." in store.output_of("dead", "list", "--review", "discarded")


def test_pages_follow_one_another(store: Shell, letters: list[UUID]) -> None:
    """A cursor from elsewhere is refused by its option."""
    first = store.run("--json", "dead", "list", "--limit", "3")
    cursor = first.err.split()[-1]
    second = store.run("--json", "dead", "list", "--cursor", cursor)
    assert [one["id"] for one in [*first.objects, *second.objects]] == [str(id) for id in letters[::-1]]
    refused = store.run("dead", "list", "--cursor", "x")
    assert refused.code == 2
    assert "--cursor" in refused.err


def test_one_letter_is_shown_with_its_review_and_its_job(store: Shell) -> None:
    """Secrets of the task and by pattern are redacted, in notes as well."""
    store.write("shop.py", SHOP.format(url=store.url))
    app = load("shop:app")
    tasks = [task_record_of(task, app.settings) for task in app.registry]
    store.in_store(lambda world: world.register("w1", *tasks))
    values = payload(order=7, iban="DE99")
    message = "password=hunter2xyz"
    (id,) = store.in_store(lambda world: die(world, task="bill", payload=values, message=message))
    store.run("--as", "ann", "dead", "ack", str(id), "--note", "token=abcdefgh12345678")
    out = store.output_of("dead", "show", str(id), "--traceback")
    assert "review        pending" in out
    assert "acknowledged  by ann" in out
    assert "ValueError: password=[redacted]" in out
    assert '{"iban":"[redacted]","order":7}' in out
    assert "none is stored" in out
    for secret in ("hunter2xyz", "abcdefgh12345678", "DE99"):
        assert secret not in out
        assert secret in store.output_of("dead", "show", str(id), "--reveal")
    (shown,) = store.run("--json", "dead", "show", str(id)).objects
    assert (shown["review"], shown["job"]["state"], shown["notes"][0]["who"]) == ("pending", "dead", "ann")
    assert store.run("dead", "show", str(NOBODY)).code == 3


def test_a_job_that_is_not_dead_has_nothing_to_show(store: Shell) -> None:
    """It says so."""
    job = store.in_store(lambda world: world.enqueue())
    refused = store.run("dead", "show", str(job.id))
    assert refused.code == 1
    assert "is ready: only a dead job has a dead letter" in refused.err


def test_letters_are_grouped_by_cause_and_counted(store: Shell, letters: list[UUID]) -> None:
    """The commonest first; the fingerprint is for `list`."""
    head, top, rare = store.output_of("dead", "groups").splitlines()
    assert head.split() == ["FINGERPRINT", "LETTERS", "TENANTS", "FIRST", "LAST", "TASK", "BREAKER", "ERROR"]
    assert top.split()[1:3] == ["3", "1"]
    assert rare.split()[-4:] == ["-", "ValueError:", "disk", "full"]
    (one,) = store.run("--json", "dead", "groups", "--limit", "1").objects
    assert (one["letters"], one["tenants"], one["sample"]) == (3, ["acme"], str(letters[2]))
    out = store.output_of("dead", "stats")
    assert out.startswith("dead letters   4\nreviews        4 pending\n")
    assert "tenants        3 acme\n               1 globex" in out
    (told,) = store.run("--json", "dead", "stats", "--tenant", "globex").objects
    assert (told["letters"], told["queues"]) == (1, {"bulk": 1})


def test_a_group_behind_an_open_breaker_says_so(store: Shell, letters: list[UUID]) -> None:
    """Before all of it is run again, too: the jobs would wait, or fail again."""
    assert len(letters) == 4
    store.in_store(lambda world: guard(world, "mail"))
    store.output_of("breakers", "open", "mail", "--note", "it is down")
    told = store.run("dead", "groups")
    assert told.out.splitlines()[0].split()[-2:] == ["BREAKER", "ERROR"]
    warning = (
        "Breaker mail is open until it is reset: 1 dead letter of mail would wait, or fail again, if run "
        "again now.\n"
    )
    assert told.err == warning
    found = {one["task"]: one["breaker"] for one in store.run("--json", "dead", "groups").objects}
    assert found == {
        "mail": {"name": "mail", "tenant": None, "state": "open", "until": None},
        "noop": None,
    }
    again = store.run("dead", "reprocess", "--task", "mail", "--yes")
    assert again.err.startswith(warning)
    assert "run again" in again.out


def test_statistics_with_many_names_are_cut(store: Shell) -> None:
    """A hundred tenants are a number."""

    async def many(world: World) -> None:
        for number in range(12):
            await die(world, tenant=f"tenant-{number:02}")

    store.in_store(many)
    assert "and 2 more" in store.output_of("dead", "stats")


def test_letters_are_exported_as_json_lines(store: Shell, letters: list[UUID]) -> None:
    """Into a file or to standard output; how many is a remark."""
    done = store.run("dead", "export", "out.jsonl")
    assert (done.code, done.out, done.err) == (0, "", "4 dead letters written.\n")
    lines = (store.folder / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(id) for id in letters[::-1]]
    assert len(store.run("dead", "export", "-", "--task", "mail").objects) == 1
    refused = store.run("dead", "export", "nowhere/out.jsonl")
    assert refused.code == 1
    assert "nowhere/out.jsonl" in refused.err


# ── one, or several by their ids ─────────────────────────────────────────────


@pytest.mark.parametrize(
    ("verb", "answer", "review"),
    [
        ("ack", "acknowledged", "pending"),
        ("resolve", "resolved", "resolved"),
        ("ignore", "ignored", "ignored"),
        ("discard", "discarded", "discarded"),
    ],
)
def test_letters_are_decided_by_their_ids(
    store: Shell, letters: list[UUID], verb: str, answer: str, review: str
) -> None:
    """Each has its answer; who and why are kept and audited."""
    ran = store.run(
        "--as", "ann@example.org", "--json", "dead", verb, *map(str, letters[:2]), "--note", "known"
    )
    assert ran.code == 0
    assert ran.objects == [{"id": str(id), "answer": answer} for id in letters[:2]]
    for id in letters[:2]:
        record = letter_of(store, id).review
        assert (record.review, record.notes[-1].who) == (review, "ann@example.org")
        assert record.notes[-1].text == "known"
    action = "acknowledge" if verb == "ack" else verb
    assert [(kind, body["actor"], body["origin"]) for kind, body in audited(store)] == [
        (f"dead.{action}", "ann@example.org", "cli")
    ] * 2


def test_a_note_is_added(store: Shell, letters: list[UUID]) -> None:
    """An empty one is refused."""
    assert store.run("dead", "note", str(letters[0]), "the bank says tomorrow").code == 0
    assert letter_of(store, letters[0]).review.notes[0].text == "the bank says tomorrow"
    assert store.run("dead", "note", str(letters[0]), " ").code == 2


def test_the_environment_names_who_acts(
    store: Shell, letters: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the command line does."""
    monkeypatch.setenv("FAIRLANE_ACTOR", "deploy-bot")
    store.run("dead", "ack", str(letters[0]))
    store.run("--as", "ann", "dead", "ack", str(letters[1]))
    assert [body["actor"] for _, body in audited(store)] == ["deploy-bot", "ann"]
    for name, words in ((" ", "--as: names nobody"), ("x" * 2_001, "--as: use at most")):
        refused = store.run("--as", name, "dead", "ack", str(letters[0]))
        assert refused.code == 2
        assert words in refused.err


def test_the_worst_answer_is_the_exit_code(store: Shell, letters: list[UUID]) -> None:
    """One alone raises its error; of several each has its answer, and the reasons follow."""
    store.run("dead", "discard", str(letters[0]))
    alone = store.run("dead", "resolve", str(letters[0]))
    assert (alone.code, alone.out) == (1, "")
    assert "is discarded: what was decided about a discarded dead letter stands" in alone.err
    several = store.run("dead", "resolve", *map(str, letters[:2]))
    assert several.code == 1
    assert [line.split()[:2] for line in several.out.splitlines()[1:]] == [
        [str(letters[0]), "refused"],
        [str(letters[1]), "resolved"],
    ]
    assert "is discarded" in several.err
    unknown = store.run("--json", "dead", "resolve", str(NOBODY), str(letters[0]))
    assert unknown.code == 3
    assert [one["answer"] for one in unknown.objects] == ["not found", "refused"]
    assert "is discarded" in unknown.objects[1]["error"]


def test_a_letter_is_deleted_after_asking(store: Shell, letters: list[UUID]) -> None:
    """For good, so a script must say yes."""
    refused = store.run("dead", "delete", str(letters[0]))
    assert refused.code == 2
    assert "this cannot be undone; confirm with --yes" in refused.err
    assert store.run("dead", "delete", str(letters[0]), "--yes", "--note", "they asked").code == 0
    assert store.run("dead", "show", str(letters[0])).code == 3
    assert audited(store)[-1][1]["note"] == "they asked"


# ── run again ────────────────────────────────────────────────────────────────


@pytest.fixture
def shop(store: Shell) -> Shell:
    """A store in which a worker has introduced itself."""
    store.write("shop.py", SHOP.format(url=store.url))
    app = load("shop:app")
    tasks = [task_record_of(task, app.settings) for task in app.registry]
    store.in_store(lambda world: world.register("w1", *tasks))
    return store


def newest(shop: Shell) -> JobRecord:
    """Return the job that was enqueued last."""
    return shop.in_store(lambda world: world.find_all())[0]


def test_a_dead_job_runs_again_as_a_new_one(shop: Shell) -> None:
    """Twice is once."""
    (id,) = shop.in_store(lambda world: die(world, task="bill", payload=payload(order=7)))
    (first,) = shop.run("--json", "dead", "reprocess", str(id), "--note", "fixed").objects
    (second,) = shop.run("--json", "dead", "reprocess", str(id)).objects
    new = newest(shop)
    assert (first["answer"], second["answer"]) == ("reprocessed", "already")
    assert first["new_job"] == second["new_job"] == str(new.id)
    assert (new.parent_id, new.state, new.idempotency_key) == (id, State.READY, f"{id}#r1")
    assert f"new job       {new.id}, which has not ended" in shop.output_of("dead", "show", str(id))


def test_new_arguments_are_read_and_checked_as_in_an_enqueue(shop: Shell) -> None:
    """Without the application, by the schema that the worker has published."""
    (id,) = shop.in_store(lambda world: die(world, task="bill", payload=payload(order=7)))
    refused = shop.run("--json", "dead", "reprocess", str(id), "--arg", "order=seven", "--arg", "x=1")
    assert refused.code == 1
    assert [one["field"] for one in refused.told["problems"]] == ["arguments.order", "arguments.x"]
    assert shop.run("dead", "reprocess", str(id), "--arg", "code=017").code == 0
    again = newest(shop)
    assert decode_arguments(again.payload) == {"order": 7, "code": "017"}
    shop.in_store(lambda world: world.cancel(again.id))  # so that the next job is the only one to be claimed
    (other,) = shop.in_store(lambda world: die(world, task="bill", payload=payload(order=7)))
    assert shop.run("dead", "reprocess", str(other), "--args", '{"order": 8}').code == 0
    assert decode_arguments(newest(shop).payload)["order"] == 8


def test_another_queue_must_be_one_that_is_served(shop: Shell) -> None:
    """Else the job would wait for ever."""
    (id,) = shop.in_store(lambda world: die(world, queue="bulk"))
    refused = shop.run("dead", "reprocess", str(id), "--to-queue", "slow")
    assert refused.code == 1
    assert "to_queue: slow is not declared" in refused.err
    assert shop.run("dead", "reprocess", str(id), "--to-queue", "default").code == 0
    assert newest(shop).queue == "default"


# ── all that match ───────────────────────────────────────────────────────────


def test_all_that_match_are_decided_with_yes(store: Shell, letters: list[UUID]) -> None:
    """One sentence, or one object; audited at both ends."""
    out = store.output_of("dead", "resolve", "--tenant", "acme", "--yes", "--note", "bank is back")
    assert out == "3 dead letters resolved.\n"
    assert [review_of(store, id) for id in letters] == [*["resolved"] * 3, "pending"]
    begin, end = audited(store)
    assert (begin[0], begin[1]["details"]["matches"], end[1]["details"]["result"]["done"]) == (
        "dead.resolve_all",
        3,
        3,
    )
    (told,) = store.run("--json", "dead", "ack", "--all", "--yes").objects
    assert (told["matches"], told["done"], told["left"]) == (1, 1, 0)


@pytest.mark.parametrize("verb", ["ack", "resolve", "ignore", "discard", "reprocess", "delete"])
def test_without_a_terminal_all_needs_a_yes(store: Shell, letters: list[UUID], verb: str) -> None:
    """Nothing has changed then."""
    refused = store.run("dead", verb, "--all")
    assert (refused.code, refused.out) == (2, "")
    assert "it would change all dead letters that match; confirm with --yes" in refused.err
    assert {review_of(store, id) for id in letters} == {"pending"}
    assert audited(store) == []


def test_all_run_again_or_say_why_not(store: Shell, letters: list[UUID]) -> None:
    """Exit code 1 if some did not."""
    store.run("close", "queue", "bulk", "--note", "moving")
    ran = store.run("dead", "reprocess", "--all", "--yes")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "3 dead letters run again.",
        "1 dead letter left as they are: 1 closed.",
    ]
    assert f"  {letters[3]}: queue bulk is closed for new jobs: moving" in ran.out
    (told,) = store.run("--json", "dead", "reprocess", "--all", "--yes").objects
    assert told["refused"] == {"closed": 1}


def test_a_limit_leaves_the_rest(store: Shell, letters: list[UUID]) -> None:
    """It is said how many."""
    out = store.output_of("dead", "delete", "--all", "--limit", "3", "--yes")
    assert out == "3 dead letters deleted.\n1 dead letter not looked at.\n"
    assert review_of(store, letters[0]) == "pending"


def test_old_letters_are_purged_whatever_was_decided(store: Shell, letters: list[UUID]) -> None:
    """With a reason; the number is the answer."""
    store.run("dead", "ignore", str(letters[0]))
    assert store.run("dead", "purge", "--older-than", "0s", "--yes").code == 2
    refused = store.run("dead", "purge", "--older-than", "0s", "--note", "clean")
    assert refused.code == 2
    assert "confirm with --yes" in refused.err
    assert store.output_of("dead", "purge", "--older-than", "2s", "--note", "clean", "--yes") == (
        "2 dead letters deleted.\n"
    )
    (told,) = store.run("--json", "dead", "purge", "--older-than", "0s", "--note", "x", "--yes").objects
    assert told == {"deleted": 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resolve",), "name dead letters by their ids, or give filters, or --all"),
        (("resolve", str(NOBODY), "--all"), "give either ids, or filters"),
        (("resolve", str(NOBODY), "--tenant", "acme"), "give either ids, or filters"),
        (("reprocess", "--all", "--arg", "x=1"), "need exactly one ID"),
        (("reprocess", str(NOBODY), "--arg", "x=1", "--args", "{}"), "only one of --arg and --args"),
        (("reprocess", str(NOBODY), "--args", "[]"), "--args is not a JSON object"),
        (("resolve", "not-an-id"), "not-an-id"),
        (("list", "--review", "lost"), "lost"),
        (("list", "--class", "bad"), "bad"),
    ],
)
def test_a_wrong_command_line_changes_nothing(
    store: Shell, letters: list[UUID], arguments: tuple[str, ...], words: str
) -> None:
    """Exit code 2."""
    refused = store.run("dead", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err
    assert {review_of(store, id) for id in letters} == {"pending"}


def test_a_long_run_tells_how_far_it_is(
    store: Shell, letters: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error; programs get the result alone."""
    from fairlane.app.dead import bulk  # noqa: PLC0415 (made small here)
    from fairlane.cli.commands.dead import answers  # noqa: PLC0415 (as above)

    monkeypatch.setattr(bulk, "STEP", 1)
    monkeypatch.setattr(answers, "_TELL_EVERY", 2)
    told = store.run("dead", "ack", "--all", "--yes")
    assert told.err.splitlines() == ["2 of 4 …", "4 of 4 …"]
    assert store.run("--json", "dead", "ack", "--all", "--yes").err == ""
