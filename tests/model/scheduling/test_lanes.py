"""A lane shares its starts between its queues by weight, or in strict order with minimum shares (S47-S49)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.policy.declared import Lane, Share
from fairlane.model.scheduling.lanes import LaneClock, QueueRequests

PLENTY = 10**6


class Driven:
    """A lane and its ready jobs; claims are answered as a store answers them, and every start is noted."""

    def __init__(self, lane: Lane, ready: Mapping[str, int] | None = None) -> None:
        """Begin with plenty in every queue unless told otherwise."""
        self.clock = LaneClock(lane)
        self.ready = Counter(dict.fromkeys(lane.queues, PLENTY) if ready is None else ready)
        self.starts: list[str] = []

    def claim(
        self, free: int, running: Mapping[str, int] | None = None, stop_at: int | None = None
    ) -> QueueRequests:
        """Take up to `limit` of each entry in order until the total is full, or the store stops early."""
        queue_requests = self.clock.queue_requests(free, running or {})
        brought: Counter[str] = Counter()
        for queue, limit in queue_requests:
            taken = min(limit, self.ready[queue], (free if stop_at is None else stop_at) - brought.total())
            brought[queue] += taken
            self.ready[queue] -= taken
            self.starts += [queue] * taken
        self.clock.started(brought)
        return queue_requests

    def run(self, batches: Iterable[int]) -> list[str]:
        """Claim in batches of these sizes and give their starts in order."""
        before = len(self.starts)
        for free in batches:
            self.claim(free)
        return self.starts[before:]


def fewest(starts: list[str], queue: str, window: int = 100) -> int:
    """Count the starts of a queue in the poorest window."""
    so_far = [0, *accumulate(start == queue for start in starts)]
    return min(late - early for early, late in zip(so_far, so_far[window:], strict=False))


def uneven(seed: int, total: int) -> list[int]:
    """Cut a number of starts into batches of 1 to 30."""
    rng, batches = random.Random(seed), list[int]()
    while sum(batches) < total:
        batches.append(rng.randint(1, 30))
    return batches


BATCHES = {
    "one by one": [1] * 1_000,
    "sevens": [7] * 143,
    "sixteens": [16] * 63,
    "hundreds": [100] * 10,
    "uneven": uneven(1, 1_000),
}
FEWER = {name: batches[: max(4, len(batches) * 2 // 5)] for name, batches in BATCHES.items()}

# ── weighted ─────────────────────────────────────────────────────────────────

B_WEIGHTS = Lane("main", 16, {"high": 3, "default": 2, "low": 1, "bulk": 1})


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_weights_of_3_2_1_1_get_their_sevenths_of_a_thousand_starts(batches: list[int]) -> None:
    """While all are backlogged, in batches of any size, to within a start or two (seed B)."""
    starts = Driven(B_WEIGHTS).run(batches)
    for queue, sevenths in {"high": 3, "default": 2, "low": 1, "bulk": 1}.items():
        assert abs(starts.count(queue) - len(starts) * sevenths / 7) <= 2


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_three_to_one_means_three_visits_to_one_and_no_starvation(batches: list[int]) -> None:
    """The light queue is never left waiting for longer than its share says."""
    starts = Driven(Lane("main", 100, {"heavy": 3, "light": 1})).run(batches)
    assert abs(starts.count("light") - len(starts) / 4) <= 1
    assert fewest(starts, "light", 200) >= 25


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=5),
    st.lists(st.integers(1, 25), min_size=40, max_size=60),
)
def test_any_weights_are_kept_to_within_a_start_of_each_queue(weights: list[int], batches: list[int]) -> None:
    """Start-time fairness: no queue is ever ahead of or behind its share by more than a round."""
    lane = Lane("main", 25, {f"q{place}": weight for place, weight in enumerate(weights)})
    starts = Driven(lane).run(batches)
    for place, weight in enumerate(weights):
        share = len(starts) * weight / sum(weights)
        assert abs(starts.count(f"q{place}") - share) <= len(weights)


def test_a_queue_alone_gets_what_is_free_and_it_has_room_for() -> None:
    """The usual lane: nothing to share out."""
    clock = LaneClock(Lane("main", 4, ["mail"]))
    assert clock.queue_requests(3, {}) == [("mail", 3)]


def test_ties_go_to_the_heavier_queue_then_to_the_listed_order() -> None:
    """At the start all clocks are equal."""
    assert Driven(Lane("main", 4, {"light": 1, "heavy": 2})).run([1]) == ["heavy"]
    assert Driven(Lane("main", 4, ["b", "a", "c"])).run([1, 1, 1]) == ["b", "a", "c"]


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_the_room_of_dry_queues_is_passed_on(batches: list[int]) -> None:
    """No slot idles while any queue has work; the others keep their proportion, to within a claim."""
    driven = Driven(B_WEIGHTS, {"default": PLENTY, "low": PLENTY})
    starts = driven.run(batches)
    assert len(starts) == sum(batches)
    assert abs(starts.count("default") - len(starts) * 2 / 3) <= max(batches)


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_queues_that_were_dry_keep_no_credit_when_they_return(batches: list[int]) -> None:
    """However long the others were away: from then on each gets its share, nobody the past."""
    driven = Driven(Lane("main", 100, ["b", "c", "d", "a"]), {"a": 3 * PLENTY})
    driven.run(batches)
    driven.ready.update(dict.fromkeys("bcd", PLENTY))
    after = driven.run([1] * 400)
    assert all(abs(after.count(queue) - 100) <= 2 for queue in "abcd")


def test_a_queue_that_returns_waits_for_no_heavier_ones_past() -> None:
    """It joins at the lowest clock of those that work, not behind a light queue that has just been served."""
    driven = Driven(
        Lane("main", 4, {"steady": 1, "back": 1, "light": 0.1}), {"steady": PLENTY, "light": PLENTY}
    )
    driven.run([1] * 100)
    while driven.starts[-1] != "light":
        driven.run([1])
    driven.ready["back"] = PLENTY
    assert abs(driven.run([1] * 8).count("back") - 4) <= 1


def test_a_queue_that_has_one_job_now_and_then_is_served_at_once() -> None:
    """It is at the head of the line, without having saved anything up."""
    driven = Driven(Lane("main", 4, {"steady": 3, "rare": 1}), {"steady": PLENTY})
    driven.run([1] * 50)
    for _ in range(20):
        driven.ready["rare"] += 1
        assert "rare" in driven.run([1] * 4)
        driven.run([1] * 7)


def test_a_claim_that_brings_nothing_changes_nobodys_turn() -> None:
    """The last free slots may be `headroom`, for tenants that run nothing: most claims for them are empty."""
    driven = Driven(B_WEIGHTS)
    for _ in range(1_000):
        driven.claim(1, stop_at=0)
        driven.claim(2, stop_at=1)
    for queue, sevenths in {"high": 3, "default": 2, "low": 1, "bulk": 1}.items():
        assert abs(driven.starts.count(queue) - 1_000 * sevenths / 7) <= 2


@pytest.mark.parametrize("reached", [1, 2, 5])
def test_a_claim_that_stops_early_is_no_proof_that_later_queues_are_dry(reached: int) -> None:
    """Only a queue that the claim passed over for a later one was dry."""
    driven = Driven(B_WEIGHTS)
    while len(driven.starts) < 1_000:
        driven.claim(7, stop_at=reached)
    for queue, sevenths in {"high": 3, "default": 2, "low": 1, "bulk": 1}.items():
        assert abs(driven.starts[:1_000].count(queue) - 1_000 * sevenths / 7) <= 3


def test_max_slots_bounds_what_a_queue_may_occupy() -> None:
    """What runs already counts, and the room goes to the others."""
    lane = Lane("main", 8, {"long": Share(5, max_slots=2), "short": 1})
    queue_requests = Counter[str]()
    for queue, limit in LaneClock(lane).queue_requests(8, {}):
        queue_requests[queue] += limit
    assert queue_requests == {"long": 2, "short": 8}
    assert LaneClock(lane).queue_requests(6, {"long": 2}) == [("short", 6)]
    assert LaneClock(lane).queue_requests(6, {"long": 5}) == [("short", 6)]
    assert dict(LaneClock(lane).queue_requests(1, {"long": 1})) == {"long": 1, "short": 1}


def test_what_is_claimed_ahead_is_shared_as_slots_are() -> None:
    """S49, S68: by weight, and of a queue with a bound no more than that."""
    lane = LaneClock(Lane("main", 4, {"high": 3, "low": Share(1.0), "few": Share(1.0, max_slots=2)}))
    asked = lane.queue_requests(4, {"few": 1}, ahead=16)
    assert asked[:3] == [("high", 14), ("low", 5), ("few", 1)]
    assert sum(limit for _, limit in asked[:3]) == 20
    assert max(limit for name, limit in asked if name == "few") == 1


def test_a_strict_lane_looks_ahead_in_its_first_queue_only() -> None:
    """S49, S68: what waits may not delay a more urgent job; without free slots it asks for nothing else."""
    lane = LaneClock(Lane("main", 4, ["first", "second"], order="strict"))
    assert lane.queue_requests(3, {}, ahead=5) == [("first", 3), ("first", 5), ("second", 3)]
    assert lane.queue_requests(0, {}, ahead=5) == [("first", 5)]


def test_a_bounded_first_queue_of_a_strict_lane_is_not_looked_ahead_in() -> None:
    """S49, S68: its slots are all that it may have."""
    lane = LaneClock(Lane("main", 4, {"first": Share(max_slots=2), "second": Share()}, order="strict"))
    assert lane.queue_requests(3, {}, ahead=5) == [("first", 2), ("second", 1), ("second", 2)]


def test_jobs_of_one_claim_start_by_the_weights_of_their_queues() -> None:
    """S49, S68: from one claim to the next, as if each start had been a claim of its own."""
    lane = LaneClock(Lane("main", 4, {"high": 3, "low": 1}))
    order: list[str] = []
    for size in (4, 16, 7, 40, 13):
        came = [name for name, limit in lane.queue_requests(4, {}, ahead=size - 4) for _ in range(limit)][
            :size
        ]
        order += [came[at] for at in lane.start_order(came)]
        lane.started(Counter(came))
    assert [Counter(order[at : at + 20]) for at in range(0, 80, 20)] == [Counter(high=15, low=5)] * 4


def test_jobs_of_a_strict_lane_start_as_claimed() -> None:
    """S49: the listed order."""
    lane = LaneClock(Lane("main", 4, ["first", "second"], order="strict"))
    assert lane.start_order(["first", "second", "first"]) == [0, 1, 2]


def test_a_lane_of_one_queue_asks_it_for_everything() -> None:
    """S68: up to its bound."""
    assert LaneClock(Lane("main", 4, ["one"])).queue_requests(3, {}, ahead=9) == [("one", 12)]
    bounded = LaneClock(Lane("main", 4, {"one": Share(max_slots=5)}))
    assert bounded.queue_requests(3, {"one": 2}, ahead=9) == [("one", 3)]


def test_a_lane_whose_queues_are_all_at_their_bound_asks_for_nothing() -> None:
    """Weighted or strict."""
    shares = {"a": Share(max_slots=1), "b": Share(max_slots=1)}
    for order in ("weighted", "strict"):
        clock = LaneClock(Lane("main", 8, shares, order))
        assert sum(limit for _, limit in clock.queue_requests(8, {})) == 2
        assert clock.queue_requests(6, {"a": 1, "b": 1}) == []
        clock.started({})
        assert clock.queue_requests(0, {}) == []


def test_a_queue_at_its_bound_hoards_no_turns() -> None:
    """A long job of the one while the other starts a thousand: afterwards they take turns."""
    driven = Driven(Lane("main", 16, {"long": Share(1, max_slots=8), "short": 1}))
    driven.claim(16)
    for _ in range(1_000):
        driven.claim(1, {"long": 8})
    after = Driven.run(driven, [1] * 100)
    assert abs(after.count("long") - 50) <= 2


def test_a_queue_with_a_bound_of_one_gets_every_second_turn() -> None:
    """Its bound takes nothing from its weight while it is free to run."""
    driven = Driven(Lane("main", 2, {"short": 1, "single": Share(1, max_slots=1)}))
    for _ in range(100):
        driven.claim(2, stop_at=1)
    assert abs(driven.starts.count("single") - 50) <= 1


def test_starts_that_were_not_asked_for_are_counted_all_the_same() -> None:
    """A worker may hold jobs of a queue before its lane asks for the first time."""
    clock = LaneClock(Lane("main", 4, ["a", "b"]))
    clock.started({"a": 2})
    assert clock.queue_requests(2, {})[0] == ("b", 2)


@pytest.mark.parametrize("order", ["weighted", "strict"])
def test_no_queue_is_ever_asked_for_more_than_its_room(order: Literal["weighted", "strict"]) -> None:
    """Entries of a queue together stay within its bound and the free slots."""
    rng = random.Random(3)
    minima = (0, 0) if order == "weighted" else (0.3, 0.2)
    shares = {"a": Share(3, 4, minima[0]), "b": Share(1, 2, minima[1]), "c": Share(2)}
    driven = Driven(Lane("main", 20, shares, order))
    for _ in range(300):
        driven.ready = Counter({queue: rng.choice([0, 1, PLENTY]) for queue in shares})
        running = {"a": rng.randint(0, 5), "b": rng.randint(0, 3)}
        free = rng.randint(0, 10)
        asked = Counter[str]()
        for queue, limit in driven.claim(free, running):
            assert limit > 0
            asked[queue] += limit
        assert asked["a"] <= min(free, max(0, 4 - running["a"]))
        assert asked["b"] <= min(free, max(0, 2 - running["b"]))
        assert asked["c"] <= free


# ── strict ───────────────────────────────────────────────────────────────────


def strict(*minima: float, slots: int = 100) -> Lane:
    """Build a lane of `high` and below it one queue for each minimum share."""
    shares = {f"low{place}": Share(min_share=share) for place, share in enumerate(minima)}
    return Lane("main", slots, {"high": Share(), **shares}, order="strict")


@pytest.mark.parametrize("batches", FEWER.values(), ids=FEWER)
@pytest.mark.parametrize(
    "minima",
    [
        (0.01,),
        (0.05,),
        (0.1,),
        (0.3,),
        (0.5,),
        (0.99,),
        (1.0,),
        (0.2, 0.1),
        (0.3, 0.3),
        (0.5, 0.5),
        (0.07, 0.13, 0.29),
        (0.33, 0.33, 0.34),
        (0.9, 0.05, 0.05),
        (0.1,) * 10,
    ],
)
def test_minimum_shares_hold_in_any_hundred_starts_in_a_row(
    minima: tuple[float, ...], batches: list[int]
) -> None:
    """Exactly so many, wherever the hundred begins; the rest goes to the first of the list."""
    starts = Driven(strict(*minima)).run(batches)
    for place, share in enumerate(minima):
        assert fewest(starts, f"low{place}") >= round(100 * share)
        assert starts.count(f"low{place}") <= share * len(starts) + 2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=4),
    st.lists(st.integers(1, 30), min_size=20, max_size=40),
)
def test_any_minimum_shares_hold_in_any_hundred_starts(parts: list[int], batches: list[int]) -> None:
    """In hundredths that fit into one, in batches of any sizes."""
    scale = max(100, sum(parts))
    minima = [part * 100 // scale / 100 for part in parts]
    starts = Driven(strict(*minima)).run([*batches, *[7] * 15])
    for place, share in enumerate(minima):
        assert fewest(starts, f"low{place}") >= round(100 * share)


def test_without_minimum_shares_the_listed_order_is_all() -> None:
    """The first queue with work has every slot."""
    driven = Driven(Lane("main", 8, ["first", "second", "third"], order="strict"), {"second": 5, "third": 50})
    assert driven.run([4, 4]) == ["second"] * 5 + ["third"] * 3
    driven.ready["first"] = 10
    assert driven.run([8]) == ["first"] * 8


def test_what_is_not_owed_goes_in_the_listed_order() -> None:
    """Also among queues that have a minimum themselves."""
    shares = {"first": Share(min_share=0.2), "second": Share(), "third": Share(min_share=0.1)}
    driven = Driven(Lane("main", 10, shares, order="strict"))
    starts = driven.run([1] * 500)
    assert set(starts) == {"first", "third"}
    assert fewest(starts, "third") == 10
    driven.ready["first"] = 0
    starts = driven.run([1] * 500)
    assert set(starts) == {"second", "third"}
    assert fewest(starts, "third") == 10
    driven.ready["first"] = PLENTY
    starts = driven.run([1] * 500)
    assert set(starts) == {"first", "third"}
    assert fewest(starts, "third") >= 9
    assert fewest(starts[10:], "third") == 10


def test_a_fresh_lane_begins_at_the_top_of_the_list() -> None:
    """A minimum share comes when it is owed, not before."""
    assert Driven(strict(0.1)).run([1] * 10) == ["high"] * 9 + ["low0"]
    assert Driven(strict(0.1)).run([10]) == ["high"] * 9 + ["low0"]
    assert Driven(strict(0.1, 0.1)).run([1] * 10) == ["high"] * 8 + ["low0", "low1"]
    assert Driven(strict(0.2, 0.1)).run([10]) == [*["high"] * 4, "low0", *["high"] * 3, "low0", "low1"]


def test_a_minimum_share_is_not_charged_for_slots_that_nobody_else_wanted() -> None:
    """Its hundred begins anew when the others return."""
    driven = Driven(strict(0.1), {"low0": PLENTY})
    assert driven.run([3] * 30) == ["low0"] * 90
    driven.ready["high"] = PLENTY
    assert fewest(driven.run(uneven(5, 500)), "low0") >= 10


def test_a_dry_queue_passes_its_minimum_on_and_saves_up_one_start_at_most() -> None:
    """When it returns it has its next turn at once, and from then on its share."""
    driven = Driven(strict(0.3), {"high": PLENTY})
    assert driven.run([5] * 200) == ["high"] * 1_000
    driven.ready["low0"] = PLENTY
    starts = driven.run([1] * 400)
    assert starts[0] == "low0"
    assert fewest(starts, "low0") == 30
    assert max(starts[first : first + 100].count("low0") for first in range(300)) <= 31


def test_a_queue_that_returns_in_a_large_claim_takes_what_it_saved_and_what_it_earns() -> None:
    """One start and three tenths of ten, not all the turns it was away."""
    driven = Driven(strict(0.3), {"high": PLENTY})
    driven.run([10] * 50)
    driven.ready["low0"] = PLENTY
    assert driven.run([10]).count("low0") == 4
    assert driven.run([10]).count("low0") == 3


def test_a_queue_that_was_dry_before_it_was_owed_anything_waits_its_turn() -> None:
    """Being passed over earns nothing."""
    lane = Lane("main", 4, {"high": Share(), "middle": Share(min_share=0.2), "low": Share()}, order="strict")
    driven = Driven(lane, {"low": PLENTY})
    assert driven.run([1]) == ["low"]
    driven.ready.update({"high": PLENTY, "middle": PLENTY})
    assert driven.run([1] * 4) == ["high", "high", "high", "middle"]


@pytest.mark.parametrize("seed", range(5))
def test_a_single_minimum_share_holds_whatever_the_other_queues_do(seed: int) -> None:
    """Others drain and return, claims stop early or bring nothing; the low queue always has jobs."""
    rng = random.Random(seed)
    lane = Lane("main", 30, {"high": Share(), "middle": Share(), "low": Share(min_share=0.2)}, order="strict")
    driven = Driven(lane, {"low": PLENTY})
    for _ in range(400):
        driven.ready["high"] = rng.choice([0, 0, 1, 3, PLENTY])
        driven.ready["middle"] = rng.choice([0, 2, PLENTY])
        driven.claim(1, stop_at=rng.choice([0, 1, 1]))
    assert fewest(driven.starts, "low") >= 20


@pytest.mark.parametrize("seed", range(20))
def test_several_minimum_shares_hold_to_within_a_start_for_each_that_drains_and_returns(seed: int) -> None:
    """Their sum is nearly the whole, and all but the first come and go."""
    rng = random.Random(seed)
    minima = rng.choice([(0.2, 0.1), (0.3, 0.3, 0.3), (0.5, 0.2, 0.2, 0.1), (0.1, 0.6, 0.3)])
    driven = Driven(strict(*minima))
    for _ in range(40):
        for place in range(1, len(minima)):
            driven.ready[f"low{place}"] = rng.choice([0, 0, 1, 2, PLENTY])
        driven.ready["high"] = rng.choice([0, 1, PLENTY, PLENTY])
        driven.run([1] * rng.randint(1, 30))
    assert fewest(driven.starts, "low0") >= round(100 * minima[0]) - (len(minima) - 1)


@pytest.mark.parametrize("batches", FEWER.values(), ids=FEWER)
def test_whole_claims_of_a_hundred_starts_hold_the_share_even_if_the_first_queue_is_dry(
    batches: list[int],
) -> None:
    """Inside one claim the starts have no order; over claims the share is exact."""
    lane = Lane(
        "main", 100, {"high": Share(), "middle": Share(), "low": Share(min_share=0.1)}, order="strict"
    )
    driven, counts = Driven(lane, {"middle": PLENTY, "low": PLENTY}), list[tuple[int, int]]()
    for free in batches:
        starts = driven.run([free])
        counts.append((len(starts), starts.count("low")))
    for first in range(len(counts)):
        total = low = 0
        for size, of_low in counts[first:]:
            total, low = total + size, low + of_low
            if total >= 100:
                assert low >= total // 10
                break


@pytest.mark.parametrize("stop_at", [1, 2])
def test_headroom_does_not_starve_a_minimum_share(stop_at: int) -> None:
    """Claims that reach only the first of their entries, with empty ones in between."""
    driven = Driven(strict(0.2))
    for _ in range(500):
        driven.claim(1, stop_at=0)
        driven.claim(3, stop_at=stop_at)
    assert fewest(driven.starts, "low0") >= 20


def test_a_minimum_share_at_its_bound_waits_without_saving_up() -> None:
    """`max_slots` comes first; when there is room again it gets its share and one start more."""
    shares = {"high": Share(), "low": Share(min_share=0.5, max_slots=1)}
    driven = Driven(Lane("main", 10, shares, order="strict"))
    for _ in range(300):
        driven.claim(1, {"low": 1})
    assert "low" not in driven.starts
    after = driven.run([1] * 100)
    assert after[0] == "low"
    assert after.count("low") in {50, 51}
