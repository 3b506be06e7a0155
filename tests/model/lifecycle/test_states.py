"""The state machine, held against a second table, written from the rule and not from the module (S23)."""

from __future__ import annotations

import pytest

from fairlane.model.lifecycle.states import (
    DETAIL_CHARS,
    ENDINGS,
    FINISHED,
    HOT,
    TRANSITIONS,
    WAITING,
    Because,
    CancelReply,
    Event,
    Home,
    State,
    because,
    home,
    is_expired,
    is_finished,
    sources,
    target,
)

RULE = """
-          enqueue      ready delayed
delayed    due          ready
delayed    run_now      ready
delayed    cancel       cancelled
delayed    expire       cancelled
delayed    condemn      dead
ready      claim        running
ready      cancel       cancelled
ready      expire       cancelled
ready      condemn      dead
running    succeed      succeeded
running    retry        delayed
running    snooze       delayed
running    hand_back    ready
running    exhaust      dead
running    fail         dead
running    stuck        dead
running    obey_cancel  cancelled
running    ask_cancel   running
running    lose         ready cancelled dead
"""

LEGAL: dict[tuple[str, str], set[str]] = {
    (state, event): set(targets)
    for state, event, *targets in (line.split() for line in RULE.strip().splitlines())
}
STATES = ["-", "delayed", "ready", "running", "succeeded", "dead", "cancelled"]
EVENTS = [
    "enqueue",
    "due",
    "run_now",
    "claim",
    "cancel",
    "expire",
    "condemn",
    "succeed",
    "retry",
    "snooze",
    "hand_back",
    "exhaust",
    "fail",
    "stuck",
    "obey_cancel",
    "ask_cancel",
    "lose",
]


def test_states_and_events_are_the_closed_sets_of_the_rule() -> None:
    """A word that is added here must be added to the rule first."""
    assert [state.value for state in State] == STATES[1:]
    assert [event.value for event in Event] == EVENTS


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_every_pair_of_state_and_event_is_legal_or_refused_as_the_rule_says(state: str, event: str) -> None:
    """All 119 pairs: where the legal ones lead, and that the others are not in the table."""
    pair = (None if state == "-" else State(state), Event(event))
    expected = LEGAL.get((state, event))
    if expected is None:
        assert pair not in TRANSITIONS
    else:
        assert {to.value for to in TRANSITIONS[pair]} == expected
        assert len(TRANSITIONS[pair]) == len(expected)


def test_the_table_has_nothing_else() -> None:
    """No pair beyond the rule's."""
    assert {(str(state or "-"), event.value) for state, event in TRANSITIONS} == set(LEGAL)


@pytest.mark.parametrize("event", EVENTS)
def test_sources_are_all_states_that_an_event_may_start_from(event: str) -> None:
    """In the order of the states; nothing stands for the state before an enqueue."""
    expected = [state for state in STATES[1:] if (state, event) in LEGAL]
    assert [state.value for state in sources(Event(event))] == expected


@pytest.mark.parametrize("event", [event for event in EVENTS if event not in {"enqueue", "lose"}])
def test_target_is_the_one_state_that_an_event_leads_to(event: str) -> None:
    """Wherever it started from."""
    (expected,) = set.union(*(to for (_, known), to in LEGAL.items() if known == event))
    assert target(Event(event)).value == expected


@pytest.mark.parametrize("event", [Event.ENQUEUE, Event.LOSE])
def test_an_event_with_a_choice_has_no_single_target(event: Event) -> None:
    """Who asks has forgotten the rules that choose."""
    with pytest.raises(ValueError, match="unpack"):
        target(event)


@pytest.mark.parametrize(
    ("state", "where", "is_waiting", "is_hot", "has_finished"),
    [
        ("delayed", "hot", True, True, False),
        ("ready", "hot", True, True, False),
        ("running", "hot", False, True, False),
        ("succeeded", "history", False, False, True),
        ("dead", "dead", False, False, True),
        ("cancelled", "history", False, False, True),
    ],
)
def test_every_state_has_one_home_and_its_groups(
    state: str, where: str, is_waiting: bool, is_hot: bool, has_finished: bool
) -> None:
    """A job is in exactly one place (S50), and a limit counts what waits (S16)."""
    known = State(state)
    assert home(known) is Home(where)
    assert (known in WAITING, known in HOT, known in FINISHED) == (is_waiting, is_hot, has_finished)
    assert is_finished(known) is has_finished


def test_nothing_ever_happens_to_a_finished_job() -> None:
    """Not one event starts from succeeded, dead or cancelled."""
    assert not [pair for pair in TRANSITIONS if pair[0] in FINISHED]


def test_every_state_can_be_reached_and_every_waiting_job_can_end() -> None:
    """No state is an island, and only finished ones are final."""
    assert {to for targets in TRANSITIONS.values() for to in targets} == set(State)
    assert {state for state, _ in TRANSITIONS if state is not None} == HOT


def test_endings_are_what_a_settlement_may_carry() -> None:
    """All that moves a running job while its claim is held: not a lost lease, not a mere request."""
    from_running = {Event(event) for state, event in LEGAL if state == "running"}
    assert from_running - {Event.LOSE, Event.ASK_CANCEL} == ENDINGS


@pytest.mark.parametrize(
    ("expires_at", "at", "has_expired"),
    [(None, 10**18, False), (10, 9, False), (10, 10, True), (10, 11, True), (0, 0, True), (0, -1, False)],
)
def test_an_attempt_may_start_until_just_before_the_expiry(
    expires_at: int | None, at: int, has_expired: bool
) -> None:
    """The instant itself is too late (S21)."""
    assert is_expired(expires_at, at) is has_expired


def test_because_is_a_closed_word_and_a_free_detail() -> None:
    """The first word is for programs, the rest for people."""
    assert because(Because.PURGED) == "purged"
    assert because(Because.PURGED, "") == "purged"
    assert because(Because.ASKED, "ordered: twice") == "asked: ordered: twice"
    assert all(":" not in word.value for word in Because)


def test_because_holds_only_what_every_store_can_keep() -> None:
    """It is bounded, and a reason with odd characters cannot make a settlement fail."""
    assert DETAIL_CHARS == 500
    assert because(Because.FAILED, "x" * 10_000) == "failed: " + "x" * DETAIL_CHARS
    kept = because(Because.FAILED, "\x00\ud800" * 1_000)
    assert kept.startswith("failed: \\x00\\ud800\\x00")
    assert len(kept) <= len("failed: ") + DETAIL_CHARS
    assert "\x00" not in kept
    kept.encode()


def test_the_answers_to_a_cancel_are_three() -> None:
    """Words of the public face (S30)."""
    assert [reply.value for reply in CancelReply] == ["cancelled", "requested", "finished"]
