"""Declared values are refused when they mean nothing, at the declaration and by the name of their field."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields
from datetime import timedelta
from typing import Any

import pytest

from fairlane.model.errors import ConfigError
from fairlane.model.failure import ErrorClass
from fairlane.model.policy.declared import (
    DEFAULT_ATTEMPTS,
    DEFAULT_SLOTS,
    DEFAULT_TIMEOUT,
    Breaker,
    Gate,
    Lane,
    Queue,
    Share,
)
from fairlane.model.policy.limits import NO_LIMITS, Limits, Rate
from fairlane.model.retry.backoff import DEFAULT_BACKOFF, Backoff


def lane(**values: Any) -> Lane:
    """Build a lane of which a test changes one thing."""
    return Lane(**{"name": "main", "slots": 4, "queues": ["a", "b"], **values})


STRICT = {"order": "strict"}

REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (Queue, {"name": "Bulk"}, "'Bulk' is not a legal queue name; use 1 to 63 of"),
    (Queue, {"name": ""}, "'' is not a legal queue name"),
    (Queue, {"name": None}, "None is not a legal queue name"),
    (Queue, {"name": "q", "timeout": 0}, "timeout must be a finite duration above 0, or None, not 0"),
    (Queue, {"name": "q", "timeout": -1}, "timeout must be"),
    (Queue, {"name": "q", "max_attempts": True}, "max_attempts must be a whole number"),
    (Queue, {"name": "q", "color": "beige"}, "color must be"),
    (Queue, {"name": "q", "retry": 3}, r"retry must be a Backoff, such as Backoff.delays.*, not 3"),
    (Queue, {"name": "q", "retry": "exponential"}, "retry must be a Backoff"),
    (Queue, {"name": "q", "retry": {"timeout": 3}}, r"retry must be a Backoff.*not \{'timeout': 3\}"),
    (Queue, {"name": "q", "retry": {"never": DEFAULT_BACKOFF}}, "retry must be a Backoff"),
    (Queue, {"name": "q", "limits": {"running": 2}}, "limits must be Limits, such as"),
    (Queue, {"name": "q", "rate": 5}, "rate must be a Rate, such as .*, or None, not 5"),
    (Queue, {"name": "q", "cost": ["jobs"]}, "cost must be jobs or seconds"),
    (Share, {"weight": "2"}, "weight must be a number from"),
    (Share, {"min_share": "2"}, "min_share must be a share"),
    (Gate, {"name": "g", "limit": 1, "rate": 5}, "rate must be a Rate"),
    (Queue, {"name": "q", "timeout": timedelta(0)}, "timeout must be"),
    (Queue, {"name": "q", "timeout": 1e-9}, "timeout must be"),
    (
        Queue,
        {"name": "q", "timeout": math.inf},
        "timeout must be a finite duration above 0, or None, not inf",
    ),
    (Queue, {"name": "q", "timeout": math.nan}, "timeout must be"),
    (Queue, {"name": "q", "max_attempts": 0}, "max_attempts must be a whole number, 1 or more, not 0"),
    (Queue, {"name": "q", "max_attempts": -3}, "max_attempts must be"),
    (Queue, {"name": "q", "max_attempts": None}, "max_attempts must be a whole number, 1 or more, not None"),
    (Queue, {"name": "q", "max_attempts": 2.5}, "max_attempts must be a whole number"),
    (
        Queue,
        {"name": "q", "max_waiting": -1},
        "max_waiting must be a whole number, 0 or more, or None, not -1",
    ),
    (Queue, {"name": "q", "cost": "money"}, "cost must be jobs or seconds, not 'money'"),
    (Share, {"weight": 0}, "weight must be a number from"),
    (Share, {"weight": -1}, "weight must be a number from"),
    (Share, {"weight": math.nan}, "weight must be a number from"),
    (Share, {"weight": math.inf}, "weight must be a number from"),
    (Share, {"max_slots": 0}, "max_slots must be a whole number, 1 or more, or None, not 0"),
    (Share, {"max_slots": 1.5}, "max_slots must be"),
    (Share, {"min_share": -0.1}, "min_share must be a share from 0 to 1, not -0.1"),
    (Share, {"min_share": 1.1}, "min_share must be"),
    (Share, {"min_share": math.nan}, "min_share must be"),
    (lane, {"name": "Main"}, "'Main' is not a legal lane name"),
    (lane, {"slots": 0}, "slots must be a whole number, 1 or more, not 0"),
    (lane, {"slots": 2.5}, "slots must be"),
    (lane, {"slots": None}, "slots must be"),
    (lane, {"headroom": "1"}, "headroom must be"),
    (lane, {"headroom": -1}, "headroom must be a whole number, 0 or more, or None, not -1"),
    (lane, {"headroom": 4}, "headroom must be below the lane's 4 slots, not 4"),
    (lane, {"headroom": 9}, "headroom must be below"),
    (lane, {"prefetch": -1}, "prefetch must be a whole number, 0 or more, or None, not -1"),
    (lane, {"prefetch": "many"}, "prefetch must be"),
    (lane, {"order": "random"}, "order must be weighted or strict, not 'random'"),
    (lane, {"queues": []}, "queues must be a list of queue names or a table of shares"),
    (lane, {"queues": {}}, "queues must be"),
    (lane, {"queues": "bulk"}, "queues must be a list of queue names or a table of shares, not 'bulk'"),
    (lane, {"queues": ["a", "B"]}, "'B' is not a legal queue name"),
    (lane, {"queues": {"*": 1}}, r"'\*' is not a legal queue name"),
    (lane, {"queues": ["a", "b", "a"]}, "queues must be names that occur once"),
    (lane, {"queues": {"a": 0}}, "weight must be a number from"),
    (lane, {"queues": {"a": Share(min_share=0.1)}}, 'min_share must be used only with order="strict"'),
    (
        lane,
        STRICT | {"queues": {"a": Share(min_share=0.6), "b": Share(min_share=0.5)}},
        "min_share must be at most 1 over the lane",
    ),
    (Gate, {"name": "Screens", "limit": 1}, "'Screens' is not a legal gate name"),
    (Gate, {"name": "screens", "limit": -1}, "limit must be a whole number, 0 or more, or None, not -1"),
    (Gate, {"name": "screens", "limit": 1.5}, "limit must be a whole number"),
    (Gate, {"name": "screens", "limit": None}, "limit must be given, unless the gate has a rate"),
    (Breaker, {"name": "Mail"}, "'Mail' is not a legal breaker name"),
    (Breaker, {"name": "mail", "failures": 0}, "failures must be a whole number, 1 or more, not 0"),
    (Breaker, {"name": "mail", "failures": 1_001}, "failures must be at most 1000, not 1001"),
    (Breaker, {"name": "mail", "window": 0}, "window must be a finite duration above 0, not 0"),
    (Breaker, {"name": "mail", "open_for": -1}, "open_for must be a finite duration above 0, not -1"),
    (Breaker, {"name": "mail", "per": "queue"}, "per must be all or tenant, not 'queue'"),
    (Breaker, {"name": "mail", "on_open": "wait"}, "on_open must be snooze or fail, not 'wait'"),
    (Breaker, {"name": "mail", "ramp": 0}, "ramp must be a whole number, 1 or more, not 0"),
    (Breaker, {"name": "mail", "errors": ()}, "errors must be exception classes"),
    (Breaker, {"name": "mail", "errors": ConnectionError}, "errors must be exception classes"),
    (Breaker, {"name": "mail", "errors": [ConnectionError, "x"]}, "errors must be exception classes"),
    (Breaker, {"name": "mail", "errors": [KeyboardInterrupt]}, "errors must be exception classes"),
]


@pytest.mark.parametrize(("make", "values", "message"), REFUSED)
def test_a_value_that_means_nothing_is_refused_by_name(
    make: Any, values: dict[str, Any], message: str
) -> None:
    """Always a ValueError that shows the field, what it must be and what it was."""
    with pytest.raises(ValueError, match=message):
        make(**values)


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (Queue, {"name": "q", "timeout": None, "max_waiting": 0}),
        (Queue, {"name": "q", "timeout": timedelta(microseconds=1), "max_waiting": None}),
        (Queue, {"name": "q", "cost": "seconds", "max_attempts": 1, "limits": Limits(waiting=1)}),
        (Share, {"weight": 0.01, "max_slots": 1, "min_share": 1}),
        (Share, {"weight": 1000, "min_share": 0}),
        (lane, {"headroom": 3}),
        (lane, {"headroom": None}),
        (lane, {"prefetch": 0}),
        (lane, {"prefetch": None}),
        (lane, {"headroom": None, "slots": 1}),
        (lane, {"queues": ("a",)}),
        (lane, STRICT | {"queues": {"a": Share(min_share=0.5), "b": Share(min_share=0.5)}}),
        (Gate, {"name": "screens", "limit": 0}),
        (Gate, {"name": "screens", "limit": None, "rate": Rate(5)}),
    ],
)
def test_the_ends_of_every_range_are_legal(make: Any, values: dict[str, Any]) -> None:
    """What is allowed is allowed to the last."""
    made = make(**values)
    assert {name: getattr(made, name) for name in values} == values


@pytest.mark.parametrize(
    "minima", [(0.16, 0.55, 0.2, 0.09), (0.26, 0.32, 0.34, 0.08), (0.1,) * 10, (0.3, 0.3, 0.4)]
)
def test_minimum_shares_that_add_up_to_one_on_paper_do_so_here(minima: tuple[float, ...]) -> None:
    """Floating point would refuse the first two."""
    shares = {f"q{place}": Share(min_share=share) for place, share in enumerate(minima)}
    assert lane(order="strict", queues=shares).shares() == shares


def test_the_defaults_of_a_queue_are_the_documented_ones() -> None:
    """Half an hour, five attempts, the default backoff, no limits, counted in jobs."""
    queue = Queue("q")
    assert (queue.timeout, queue.max_attempts) == (DEFAULT_TIMEOUT, DEFAULT_ATTEMPTS) == (1800.0, 5)
    assert (queue.retry, queue.limits, queue.cost) == (DEFAULT_BACKOFF, NO_LIMITS, "jobs")
    assert (queue.max_waiting, queue.rate) == (None, None)
    assert DEFAULT_SLOTS == 16
    assert Share() == Share(weight=1.0, max_slots=None, min_share=0.0)


def test_equal_declarations_are_equal_and_cannot_be_changed() -> None:
    """So that a worker can tell a changed policy from the same one."""
    one, same = Queue("q", retry=Backoff.delays(1, 2)), Queue("q", retry=Backoff.delays(1, 2))
    assert one == same
    assert one != Queue("q", retry=Backoff.delays(1, 3))
    for value in (one, Share(), lane(), Gate("g", 1), Rate(1), Limits(), Backoff()):
        with pytest.raises(FrozenInstanceError):
            setattr(value, fields(value)[0].name, "other")
        assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    ("queues", "shares"),
    [
        (["b", "a"], {"b": Share(), "a": Share()}),
        ({"b": 3, "a": 0.5}, {"b": Share(3), "a": Share(0.5)}),
        ({"b": Share(2, max_slots=1), "a": 1}, {"b": Share(2, max_slots=1), "a": Share(1)}),
    ],
)
def test_a_lane_gives_the_shares_of_its_queues_in_the_listed_order(
    queues: Any, shares: dict[str, Share]
) -> None:
    """Names alone have equal weight; a number is a weight."""
    assert list(lane(queues=queues).shares().items()) == list(shares.items())


@pytest.mark.parametrize(
    ("slots", "kept"), [(1, 0), (2, 1), (3, 1), (8, 1), (15, 1), (16, 2), (23, 2), (24, 3), (1_000, 125)]
)
def test_an_eighth_of_a_lane_is_kept_unless_it_says_otherwise(slots: int, kept: int) -> None:
    """S48: at least one slot, but never the only one; a lane's own value wins, also 0."""
    assert lane(slots=slots).headroom_slots == kept
    assert lane(slots=slots, headroom=0).headroom_slots == 0
    assert lane(slots=1_001, headroom=slots).headroom_slots == slots


def test_a_queue_may_retry_by_class() -> None:
    """The classes, or their words."""
    by_class = {ErrorClass.TIMEOUT: Backoff.never(), "transient": Backoff.delays(1)}
    assert Queue("q", retry=by_class).retry == by_class  # type: ignore[arg-type]


def test_an_error_of_a_declaration_has_its_parts() -> None:
    """For programs."""
    with pytest.raises(ConfigError) as caught:
        Rate(0)
    assert (caught.value.key, caught.value.allowed) == ("limit", "a whole number, 1 or more")


def test_the_defaults_of_a_breaker_are_the_documented_ones() -> None:
    """Five failures in a minute, open for a minute; what a list names is kept as it was then."""
    breaker = Breaker("mail")
    assert (breaker.failures, breaker.window, breaker.open_for) == (5, 60.0, 60.0)
    assert (breaker.per, breaker.on_open, breaker.ramp, breaker.errors) == ("all", "snooze", 8, (Exception,))
    errors = [ConnectionError]
    listed = Breaker("mail", errors=errors)  # type: ignore[arg-type]
    errors.clear()
    assert listed.errors == (ConnectionError,)
