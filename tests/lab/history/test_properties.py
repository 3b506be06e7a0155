"""The history checker on a correct store that runs at random, and on its known corruptions."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlane.lab.history import ViolationKind, check
from fairlane.lab.ledger import (
    Ended,
    Found,
    Reading,
    Reclaimed,
    Record,
    Settled,
    Stale,
    Started,
    decode_lines,
    encode_line,
)
from tests.lab.history.corruptions import CORRUPTIONS, Corruption
from tests.lab.history.histories import good_history

SEEDS = st.integers(0, 1 << 32)


def files_of(history: list[Record]) -> list[list[bytes]]:
    """Split a history into the files of its recorders, each in the order of its events."""
    files: dict[str, list[bytes]] = {}
    for record in history:
        match record:
            case Started() | Ended():
                name = f"handler-{record.job}"
            case Settled() | Stale():
                name = "worker"
            case Reclaimed():
                name = "duty"
            case Found() | Reading():
                name = "reader"
            case _:
                name = "enqueuer"
        files.setdefault(name, []).append(encode_line(record))
    return list(files.values())


def woven(files: list[list[bytes]], random: Random) -> list[bytes]:
    """Interleave files as a reader may see them: each file keeps its own order."""
    turns = [number for number, lines in enumerate(files) for _ in lines]
    random.shuffle(turns)
    lines = [iter(file) for file in files]
    return [next(lines[turn]) for turn in turns]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 12), st.booleans())
def test_every_history_of_a_correct_store_is_kept(seed: int, jobs: int, drained: bool) -> None:
    """Crashes, pauses, lost replies and cancels included."""
    verdict = check(good_history(seed, jobs, drained=drained), drained=drained, isolated=True)
    assert verdict.violations == ()
    assert verdict.counts.jobs >= verdict.counts.acknowledged_jobs


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.randoms(use_true_random=False), st.one_of(st.none(), st.sampled_from(CORRUPTIONS)))
def test_the_order_of_lines_changes_no_verdict(
    seed: int, random: Random, corruption: tuple[ViolationKind, Corruption] | None
) -> None:
    """Neither of files woven together, nor of all lines: of good histories and of broken ones."""
    history = good_history(seed, 6)
    history = (corruption[1](history) if corruption else history) or history
    files = files_of(history)
    expected = check(history)
    assert check(decode_lines(woven(files, random))) == expected
    lines = list(chain.from_iterable(files))
    random.shuffle(lines)
    assert check(decode_lines(lines)) == expected


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_torn_ends_of_files_change_nothing_but_their_count(seed: int, torn: int) -> None:
    """A recorder that is killed in a line leaves the rest of its file good."""
    files = files_of(good_history(seed, 6))
    cut = [[*file, b'{"e":"settl'] if number < torn else file for number, file in enumerate(files)]
    expected = check(chain.from_iterable(map(decode_lines, files)))
    verdict = check(chain.from_iterable(map(decode_lines, cut)))
    assert verdict.violations == expected.violations == ()
    assert verdict.counts.torn == min(torn, len(files))


@pytest.mark.parametrize(
    ("kind", "corruption"), CORRUPTIONS, ids=[corruption.__name__ for _, corruption in CORRUPTIONS]
)
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_good_history_that_is_broken_is_refused_by_its_name(
    kind: ViolationKind, corruption: Corruption, seed: int
) -> None:
    """One corruption, one kind of violation, whatever else happened."""
    history = corruption(good_history(seed, drained=True))
    assume(history is not None)
    assert history is not None
    isolated, drained = kind is ViolationKind.NOT_ALONE, kind is ViolationKind.NOT_DRAINED
    assert check(history, drained=drained, isolated=isolated).kinds == {kind}


def test_every_kind_has_a_corruption() -> None:
    """A kind that nothing provokes may never be found."""
    assert {kind for kind, _ in CORRUPTIONS} == set(ViolationKind)
