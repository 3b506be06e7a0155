"""Until when a dead letter is stored depends on its review (S52, S75)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.model.instants import DAY
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.model.review import Mark, Review, ReviewRecord
from tests.model.retry.test_decision import job

DIED, DECIDED = 1_000, 5_000
TIMES: Final = Retention(dead=100, dead_reviewed=10)
FROM_DEATH: Final = Retention(dead=100, dead_reviewed=10, is_from_review=False)
OWN: Final = Retention(dead=100, dead_reviewed=10, queues={"bulk": 40, "none": 0}, tenants={"acme": 70})


def letter(review: Review) -> ReviewRecord:
    """Return a review that was decided if it is not pending."""
    return ReviewRecord(review, decided=None if review == "pending" else Mark("ann", DECIDED))


def dead(queue: str, tenant: str) -> JobRecord:
    """Return a dead job."""
    return job(state=State.DEAD, settled_at=DIED, queue=queue, tenant=tenant)


@pytest.mark.parametrize(
    ("times", "review", "until"),
    [
        (TIMES, "pending", DIED + 100),
        (TIMES, "reprocessed", DIED + 100),
        (TIMES, "resolved", DECIDED + 10),
        (TIMES, "ignored", DECIDED + 10),
        (TIMES, "discarded", DECIDED + 10),
        (FROM_DEATH, "pending", DIED + 100),
        (FROM_DEATH, "resolved", DIED + 10),
        (Retention(), "pending", DIED + 30 * DAY),
        (Retention(), "ignored", DECIDED + 7 * DAY),
    ],
)
def test_what_awaits_a_decision_and_what_was_decided_have_times_of_their_own(
    times: Retention, review: Review, until: int
) -> None:
    """A letter that runs again counts as undecided: how that ends is still to be seen."""
    assert times.dead_until(dead("mail", "globex"), letter(review)) == until


@pytest.mark.parametrize(
    ("queue", "tenant", "kept"), [("bulk", "globex", 40), ("none", "globex", 0), ("bulk", "acme", 70)]
)
@pytest.mark.parametrize("review", ["pending", "resolved"])
def test_the_time_of_a_queue_or_tenant_counts_from_the_death(
    queue: str, tenant: str, kept: int, review: Review
) -> None:
    """Whatever was decided, and when; a time of zero is a time too."""
    assert OWN.dead_until(dead(queue, tenant), letter(review)) == DIED + kept


def test_a_letter_that_says_not_when_it_died_died_at_the_beginning() -> None:
    """So that it goes; and a decision without a time of its own is none."""
    assert TIMES.dead_until(job(settled_at=None), letter("pending")) == 100
    assert TIMES.dead_until(job(settled_at=DIED), ReviewRecord("resolved")) == DIED + 100


@pytest.mark.parametrize(
    ("times", "shortest"),
    [
        (TIMES, 10),
        (Retention(dead=5, dead_reviewed=10), 5),
        (OWN, 0),
        (Retention(dead=50, dead_reviewed=60, tenants={"acme": 40}, queues={"q": 45}), 40),
        (Retention(), 7 * DAY),
    ],
)
def test_nothing_younger_than_the_shortest_time_is_ever_removed(times: Retention, shortest: int) -> None:
    """It is the least of all that may apply."""
    assert times.shortest_dead == shortest
    for review in ("pending", "resolved"):
        for queue, tenant in (("bulk", "globex"), ("none", "globex"), ("mail", "acme"), ("q", "x")):
            assert times.dead_until(dead(queue, tenant), letter(review)) >= DIED + shortest
