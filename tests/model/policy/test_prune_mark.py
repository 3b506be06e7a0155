"""A pass of pruning reads what has become old since the last one, and nothing twice (S103)."""

from __future__ import annotations

import pytest

from fairlane.model.policy.prune_mark import NO_MARK, PruneMark, Span, mark_after, spans
from fairlane.model.policy.retention import NO_CUTS, CountCuts, Retention

KEEP = Retention(succeeded=100, cancelled=100, results=50)
OWN = Retention(
    succeeded=100, cancelled=200, results=50, queues={"q": 10}, tenants={"a": 20}, tasks={"t": 400}
)


@pytest.mark.parametrize(
    ("keep", "mark", "cuts", "read"),
    [
        (KEEP, NO_MARK, NO_CUTS, [(0, 950)]),
        (KEEP, PruneMark(at=990), NO_CUTS, [(891, 900), (941, 950)]),
        (KEEP, PruneMark(at=1000), NO_CUTS, []),
        (KEEP, PruneMark(at=900), NO_CUTS, [(801, 950)]),
        (KEEP, PruneMark(at=950), NO_CUTS, [(851, 950)]),
        (
            OWN,
            PruneMark(at=999),
            NO_CUTS,
            [(600, 600), (800, 800), (900, 900), (950, 950), (980, 980), (990, 990)],
        ),
        (KEEP, PruneMark(at=1000), CountCuts(700), [(0, 699)]),
        (KEEP, PruneMark(at=1000, cut=650), CountCuts(700, dead=5), [(650, 699)]),
        (KEEP, PruneMark(at=990, cut=650), CountCuts(900), [(650, 900), (941, 950)]),
        (KEEP, PruneMark(at=990, reached=895), NO_CUTS, [(895, 900), (941, 950)]),
        (KEEP, PruneMark(at=990, reached=920), NO_CUTS, [(941, 950)]),
        (KEEP, PruneMark(reached=30), CountCuts(20), [(30, 950)]),
    ],
)
def test_only_what_has_become_old_since_is_read(
    keep: Retention, mark: PruneMark, cuts: CountCuts, read: list[tuple[int, int]]
) -> None:
    """For each age, and for the limit by number; parts that touch are one."""
    assert spans(keep, 1000, cuts, mark) == tuple(Span(*one) for one in read)


def test_a_young_store_has_nothing_to_read() -> None:
    """No settlement is older than the ages."""
    assert spans(KEEP, 40, NO_CUTS, NO_MARK) == ()


def test_passes_in_a_row_read_each_settlement_once_for_each_age() -> None:
    """However many there are, and whenever they come."""
    mark, read = NO_MARK, []
    for now in (1000, 1007, 1100, 1500):
        read += [at for one in spans(KEEP, now, NO_CUTS, mark) for at in range(one.first, one.last + 1)]
        mark = mark_after(mark, now, NO_CUTS)
    assert sorted(set(read)) == list(range(1451))
    assert max(map(read.count, set(read))) == 2


def test_a_pass_that_left_something_is_gone_on_with() -> None:
    """What became old while a sweep was under way is for the next one, which begins where this one began."""
    first = mark_after(PruneMark(at=500, cut=90), 1000, CountCuts(100), 300)
    assert first == PruneMark(at=500, cut=90, next_at=1000, next_cut=100, reached=300)
    second = mark_after(first, 1010, CountCuts(110), 400)
    assert second == PruneMark(at=500, cut=90, next_at=1000, next_cut=100, reached=400)
    assert mark_after(second, 1011, CountCuts(110), 350).reached == 400
    assert mark_after(second, 1020, CountCuts(120)) == PruneMark(at=1000, cut=100)
