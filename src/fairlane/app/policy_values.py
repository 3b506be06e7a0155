"""Check the values of a policy that is changed at run time, before the store is asked. Decides no policy.

A type checker finds most of it; who has none is told by name what is wrong, and nothing odd is ever stored.
"""

from __future__ import annotations

from msgspec import UnsetType

from fairlane.app.checks import kind_of
from fairlane.model.fairness import stride
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.layers import EVERY
from fairlane.model.limits import Limits, Rate
from fairlane.model.names import invalid_name, name_hint


def weight_of(weight: object) -> float:
    """Return a weight that a tenant may have."""
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise _refusal("weight", weight, "a number from 0.01 to 1000")
    stride(weight)  # raises what is out of range
    return weight


def limits_of(limits: object) -> Limits:
    """Return limits as they are given."""
    if not isinstance(limits, Limits):
        raise _refusal("limits", limits, "Limits(...)")
    return limits


def rate_of(rate: object) -> Rate | UnsetType | None:
    """Return a rate, or None which takes it away."""
    if rate is None or isinstance(rate, Rate | UnsetType):
        return rate
    raise _refusal("rate", rate, "Rate(...), or None for no rate")


def count_of(field: str, count: object) -> int | UnsetType | None:
    """Return a limit in jobs, or None which takes it away."""
    if count is None or isinstance(count, UnsetType):
        return count
    if not isinstance(count, int) or isinstance(count, bool):
        raise _refusal(field, count, "a whole number, or None for no limit")
    if not 0 <= count <= LAST_INSTANT:
        message = f"{field} is {count}; use 0 or more, or None for no limit"
        raise ValueError(message)
    return count


def queue_of(queue: object) -> str:
    """Return the name of a queue, or `*` for every queue; `InvalidJob` if it is neither."""
    hint = None if queue == EVERY else name_hint(queue)
    if hint is not None:
        raise invalid_name("queue", queue, hint)
    return str(queue)


def _refusal(name: str, value: object, wanted: str) -> ValueError:
    return ValueError(f"{name} has a value of type {kind_of(value)}; give {wanted}")
