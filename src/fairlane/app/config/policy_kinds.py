"""The kinds of values that are small tables: rates, retry policies, labels, shares of a lane.

Each replaces the value of a lower layer as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from fairlane.app.config.units import duration_text
from fairlane.app.config.value_kinds import ValueKind, count, duration, list_of, number, one_of
from fairlane.app.did_you_mean import did_you_mean
from fairlane.model.failure import ErrorClass
from fairlane.model.names import label_hint, name_hint
from fairlane.model.policy.declared import Share
from fairlane.model.policy.limits import Rate
from fairlane.model.retry.backoff import Backoff, RetryPolicy
from fairlane.model.scheduling.fairness import HEAVIEST, LIGHTEST

V = TypeVar("V")

WEIGHT: Final = number(LIGHTEST, HEAVIEST)

_RATE: Final = {"limit": count(1), "per": one_of("second", "minute", "hour", "day"), "burst": count(1)}
_EXPONENTIAL: Final = {
    "base": duration(0.001),
    "factor": number(1, 1000),
    "cap": duration(0.001),
    "floor": duration(),
    "jitter": number(0, 1),
}
_DELAYS: Final = {"delays": list_of(duration()), "jitter": number(0, 1)}
_SHARE: Final = {"weight": WEIGHT, "max_slots": count(1), "min_share": number(0, 1)}
_KINDS: Final = "exponential", "delays", "list", "never"


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError  # noqa: TRY004 (as all kinds do)
    return dict(cast("Mapping[str, Any]", value))


def _fields(table: Mapping[str, Any], kinds: Mapping[str, ValueKind]) -> dict[str, Any]:
    """Read each field by its kind; ValueError names the wrong field and what is allowed."""
    fields: dict[str, Any] = {}
    for name, value in table.items():
        if name not in kinds:
            message = f"there is no key {name!r} in it{did_you_mean(name, list(kinds))}"
            raise ValueError(message)
        try:
            fields[name] = kinds[name].read(value)
        except ValueError:
            message = f"{name} in it is {value!r}; allowed: {kinds[name].allowed}"
            raise ValueError(message) from None
    return fields


def _rate(value: Any) -> Rate:
    fields = _fields(_table(value), _RATE)
    if "limit" not in fields:
        message = "limit is missing in it"
        raise ValueError(message)
    return Rate(**fields)


def _rate_text(rate: Rate) -> str:
    return f"{rate.limit} a {rate.per}, burst {rate.burst}"


RATE: Final = ValueKind(
    _rate, 'a table { limit = 50, per = "second", "minute", "hour" or "day", burst = 5 }', show=_rate_text
)


def _backoff(value: Any) -> Backoff:
    table = _table(value)
    kind = table.pop("kind", None)
    match kind:
        case "exponential":
            return Backoff.exponential(**_fields(table, _EXPONENTIAL))
        case "delays" | "list":
            fields = _fields(table, _DELAYS)
            return Backoff.delays(*fields.pop("delays", ()), **fields)
        case "never":
            _fields(table, {})
            return Backoff.never()
        case _:
            near = did_you_mean(str(kind), list(_KINDS))
            message = f"kind in it is {kind!r}{near}" if kind is not None else "kind is missing in it"
            raise ValueError(message)


def _retry(value: Any) -> RetryPolicy:
    table = _table(value)
    classes = [error_class.value for error_class in ErrorClass]
    if not table or not all(isinstance(one, Mapping) for one in table.values()):
        return _backoff(table)
    for name in table:
        if name not in classes:
            message = f"there is no error class {name!r}{did_you_mean(name, classes)}"
            raise ValueError(message)
    return {ErrorClass(name): _backoff(one) for name, one in table.items()}


def retry_text(retry: RetryPolicy) -> str:
    """Return a retry policy as readable text.

    >>> retry_text(Backoff.delays(10, 90)), retry_text({ErrorClass.TIMEOUT: Backoff.never()})
    ('10s, 90s', 'timeout: never')
    >>> retry_text(Backoff.exponential(30, cap=900))
    '30s, then 2 times as long, up to 15m, jitter 0.2'
    """
    if not isinstance(retry, Backoff):
        return "; ".join(
            f"{error_class.value}: {retry_text(backoff)}" for error_class, backoff in retry.items()
        )
    if retry.steps is not None:
        return ", ".join(duration_text(step) for step in retry.steps) or "never"
    growth = (
        f"{duration_text(retry.base)}, then {retry.factor:g} times as long, up to {duration_text(retry.cap)}"
    )
    return f"{growth}, jitter {retry.jitter:g}"


RETRY: Final = ValueKind(
    _retry,
    '{ kind = "exponential", base, factor, cap, floor, jitter }, { kind = "delays", delays = [10, 30] }, '
    '{ kind = "never" }, or a table of these by error class',
    show=retry_text,
)


def _labels(value: Any) -> dict[str, str]:
    table = _table(value)
    for key, label in table.items():
        if label_hint(key) is not None or label_hint(label) is not None:
            message = f"{key!r} has {label!r} in it"
            raise ValueError(message)
    return table


LABELS: Final = ValueKind(_labels, 'a table of texts, e.g. { plan = "enterprise" }')


def _share(value: Any) -> float | Share:
    if isinstance(value, Mapping):
        return Share(**_fields(_table(cast("Mapping[str, Any]", value)), _SHARE))
    weight: float = WEIGHT.read(value)
    return weight


def _queues(value: Any) -> tuple[str, ...] | dict[str, float | Share]:
    if not isinstance(value, list | tuple | Mapping) or not value:
        raise ValueError
    names: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    for name in names:
        if name_hint(name) is not None:
            message = f"{name!r} in it is not a legal name"
            raise ValueError(message)
    if isinstance(value, Mapping):
        return {name: _share(share) for name, share in _table(cast("Mapping[str, Any]", value)).items()}
    return tuple(names)


QUEUES: Final = ValueKind(
    _queues,
    "a list of queue names, or a table of weights: { bulk = 2 } or { bulk = { weight = 2, max_slots = 4 } }",
)
