"""What a process remembers of breakers: the newest word holds, and claims bring words, too (S110, S124)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.app.guards.breaker_memory import MANY_WORDS, WORD_HOLDS, BreakerMemory
from fairlane.model.guards.breaker import CLOSED, BreakerState, Phase
from fairlane.model.instants import MINUTE, SECOND, Instant
from fairlane.model.policy.declared import Breaker
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersReply,
    BreakerWord,
    OpenBreakers,
    StoredBreaker,
)

MAIL: Final = BreakerKey("mail")
AT: Final[Instant] = 1_000 * SECOND


class Process:
    """One process with its own clock; the store's is `AT` when it begins."""

    def __init__(self) -> None:
        """Begin."""
        self.elapsed = 50 * SECOND
        self.memory = BreakerMemory(lambda: self.elapsed)
        self.memory.declared["mail"] = Breaker("mail")

    def told(self, state: BreakerState, now: Instant = AT) -> None:
        """Hear the answer to a report."""
        self.memory._hear(BreakersReply(now, (StoredBreaker(MAIL, state),)))

    def knows(self, tenant: str = "acme") -> Phase | None:
        """Return what suffices to pass or not to; None: it would ask."""
        word = self.memory.word("mail", tenant)
        return word.phase if word is not None and self.memory.is_fresh(word) else None


def claimed(now: Instant, phase: Phase = "open", key: BreakerKey = MAIL) -> OpenBreakers:
    """Return what a claim says of one breaker that is open for a minute."""
    return OpenBreakers(now, (BreakerWord(key, phase, AT + MINUTE),))


@pytest.fixture
def here() -> Process:
    """A process that was told a moment ago that the breaker is closed."""
    process = Process()
    process.told(CLOSED)
    assert process.knows() == "closed"
    return process


def test_a_claim_ends_an_older_word(here: Process) -> None:
    """S124: from then on nobody passes; a half-open one is asked for a permit."""
    here.memory.hear(claimed(AT + 1))
    assert here.knows() == "open"
    here.memory.hear(claimed(AT + 2, "half_open"))
    assert here.knows() == "half_open"


def test_of_two_answers_the_one_that_was_said_later_holds(here: Process) -> None:
    """S124: answers may overtake each other on their way."""
    here.memory.hear(claimed(AT + 2))
    here.told(CLOSED, AT + 1)
    assert here.knows() == "open"
    here.told(CLOSED, AT + 3)
    assert here.knows() == "closed"
    here.memory.hear(claimed(AT + 2))
    assert here.knows() == "closed"


def test_a_word_that_does_not_hold_any_more_ends_by_any_other(here: Process) -> None:
    """S110: also where the store's clock was put back."""
    here.elapsed += WORD_HOLDS
    here.memory.hear(claimed(AT - MINUTE))
    assert here.knows() == "open"


def test_a_word_of_one_tenant_stands_above_a_closed_one_for_all(here: Process) -> None:
    """S112: and it stops that tenant alone."""
    here.memory.hear(claimed(AT + 1, key=BreakerKey("mail", "acme")))
    assert (here.knows("acme"), here.knows("globex")) == ("open", "closed")


def test_after_too_many_to_name_no_older_closed_word_holds(here: Process) -> None:
    """S124: who enters asks; what the store says then holds again."""
    here.memory.hear(OpenBreakers(AT + 1, is_cut=True))
    assert here.knows() is None
    here.told(CLOSED, AT + 2)
    assert here.knows() == "closed"


def test_another_process_hears_what_concerns_a_tenant_and_how_old_it_is(here: Process) -> None:
    """S124: nothing at all while all are closed."""
    assert here.memory.words_for("acme") == ()
    here.memory.hear(claimed(AT + 1, key=BreakerKey("mail", "globex")))
    assert here.memory.words_for("acme") == ()
    here.memory.hear(claimed(AT + 2))
    here.memory.hear(OpenBreakers(AT + 3, is_cut=True))
    child = Process()
    child.told(CLOSED, AT + 1)
    for said in here.memory.words_for("acme"):
        child.memory.hear(said, AT + 2 + SECOND)
    assert child.knows() == "open"
    child.elapsed += WORD_HOLDS - SECOND - 1
    assert child.knows() == "open"
    child.elapsed += 1
    assert child.knows() is None
    child.told(CLOSED, AT + 2)
    assert child.knows() is None, "it was said before there were too many to name"
    here.elapsed += WORD_HOLDS
    assert here.memory.words_for("acme") == ()


def test_what_a_store_has_said_is_forgotten_when_it_is_closed(here: Process) -> None:
    """S110: the next store may be another one."""
    here.memory.hear(OpenBreakers(AT + 1, is_cut=True))
    here.memory.forget()
    assert here.knows() is None
    here.told(CLOSED)
    assert here.knows() == "closed"


def test_old_words_of_closed_breakers_are_dropped_and_others_are_kept() -> None:
    """Where each tenant has its own, a process would remember every tenant it has ever served."""
    process = Process()
    states = {"acme": BreakerState(open_until=AT + MINUTE, slots=0), "globex": CLOSED}
    tenants = [*states, *(f"t{number}" for number in range(MANY_WORDS - len(states)))]
    keys = [BreakerKey("mail", tenant) for tenant in tenants]
    stored = tuple(StoredBreaker(key, states.get(key.tenant, CLOSED)) for key in keys)
    process.memory._hear(BreakersReply(AT, stored))
    assert process.knows("acme") == "open"
    process.elapsed += WORD_HOLDS
    process.memory._hear(BreakersReply(AT + WORD_HOLDS, (StoredBreaker(BreakerKey("mail", "new"), CLOSED),)))
    assert set(process.memory._words) == {BreakerKey("mail", "acme"), BreakerKey("mail", "new")}
