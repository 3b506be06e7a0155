"""What is told of the doctor's findings: a beginning, each day, an end (S76)."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import DAY, MINUTE
from fairlane.model.journal.findings import DoctorFinding, News, Told, finding_of, news_of

LATE = DoctorFinding(check="waiting", subject="queue mail", level="warn", what="16m", advice="Add slots.")
NOBODY = DoctorFinding(check="workers", level="bad", what="no worker is live")


def told(news: News) -> list[tuple[str, str]]:
    """Return kind and subject of each event."""
    return [(one.kind, one.subject) for one in news.entries]


def test_a_problem_is_told_when_it_begins_and_when_it_has_ended() -> None:
    """Not in between, and with its last words."""
    begun = news_of([LATE, NOBODY], {}, 0)
    assert told(begun) == [("finding", "waiting queue mail"), ("finding_critical", "workers")]
    assert news_of([LATE, NOBODY], begun.told, MINUTE) == News((), begun.told)
    ended = news_of([NOBODY], begun.told, 2 * MINUTE)
    assert told(ended) == [("finding_ended", "waiting queue mail")]
    assert finding_of(ended.entries[0]) == LATE
    assert set(ended.told) == {"workers"}


def test_other_numbers_are_the_same_problem_and_another_level_is_a_new_one() -> None:
    """A waiting time that grows would be told each minute."""
    begun = news_of([LATE], {}, 0)
    assert not news_of([msgspec.structs.replace(LATE, what="17m")], begun.told, MINUTE).entries
    worse = msgspec.structs.replace(LATE, level="bad")
    assert told(news_of([worse], begun.told, MINUTE)) == [("finding_critical", "waiting queue mail")]


def test_a_problem_that_lasts_is_told_once_a_day() -> None:
    """With today's words, so that it is among the events as long as it lasts."""
    begun = news_of([LATE], {}, 0)
    later = msgspec.structs.replace(LATE, what="1d")
    assert not news_of([later], begun.told, DAY - 1).entries
    again = news_of([later], begun.told, DAY)
    assert finding_of(again.entries[0]) == later
    assert again.told == {later.key: Told(later, DAY)}
