"""The effective settings of an application, as one checked value. Reads no file and no environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypedDict, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.archive_settings import NO_ARCHIVE, ArchiveSettings
from fairlane.app.doctor_settings import DoctorSettings
from fairlane.app.journal_settings import AuditSettings, DeadLetterSettings, EventSettings
from fairlane.app.web_settings import WebSettings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.checking import flag, instance, is_listed, is_text, shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import MESSAGE_CHARS, TRACEBACK_CHARS, ErrorBounds
from fairlane.model.instants import Duration
from fairlane.model.job import OnStuck
from fairlane.model.names import name_hint
from fairlane.model.payload.encoding import PayloadRules
from fairlane.model.payload.sensitive import SensitivePolicy
from fairlane.model.policy.declared import Breaker, Budget, Gate, Lane, Queue, Tenancy
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import TenantRules
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.scheduling.priority import HIGHEST, LOWEST, is_priority

DEFAULT_QUEUE: Final = "default"
"""The home queue of a task that names none; always declared."""

Direction: TypeAlias = Literal["higher_first", "lower_first"]
"""Which priorities run first (S19)."""

ERROR_CHARS: Final[Mapping[str, tuple[int, int]]] = {
    "message": (100, MESSAGE_CHARS),
    "traceback": (0, TRACEBACK_CHARS),
}
"""The bounds of each key of `[errors]`."""

Required: TypeAlias = Literal["correlation_id", "idempotency_key"]


class PayloadSettings(TypedDict, total=False):
    """The table `[payload]` of fairlane.toml as a dict; sizes in bytes."""

    warn_over: int
    max_size: int
    max_depth: int
    check_types: bool
    sensitive: SensitivePolicy
    require: Sequence[Required]
    categories: Mapping[str, Sequence[str]]


class ErrorSettings(TypedDict, total=False):
    """The table `[errors]` of fairlane.toml as a dict; numbers of characters."""

    message: int
    traceback: int


class TaskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one task in `[tasks]`. UNSET keeps the value of its decorator."""

    timeout: Duration | UnsetType | None = UNSET
    soft_timeout: Duration | UnsetType | None = UNSET
    stuck_after: Duration | UnsetType = UNSET
    on_stuck: OnStuck | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    retry: RetryPolicy | UnsetType = UNSET
    gate: str | UnsetType = UNSET
    breaker: str | UnsetType = UNSET
    budget: str | UnsetType = UNSET
    rate: Rate | UnsetType = UNSET
    on_bad_result: Literal["drop", "dead"] | UnsetType = UNSET
    isolation: Literal["auto", "process"] | UnsetType = UNSET
    max_memory: int | UnsetType | None = UNSET


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one application. `queues` holds the declared queues by name, and `default`.

    `is_default_url`: no store is configured, so it is a file in the working directory. `has_open_queues`: no
    queues are declared, so tasks declare theirs by naming them, with the values of `queue_defaults`. The
    entry `*` of `tenants` is for undeclared tenants. `schedules` has what the file says of each, by word.
    """

    url: str | None
    is_default_url: bool = False
    name: str
    import_: str | None = None
    queues: Mapping[str, Queue]
    queue_defaults: Queue = Queue(DEFAULT_QUEUE)
    has_open_queues: bool
    lanes: tuple[Lane, ...]
    gates: tuple[Gate, ...]
    breakers: tuple[Breaker, ...] = ()
    budgets: tuple[Budget, ...] = ()
    tenancy: Tenancy
    imports: tuple[str, ...]
    fixed_queues: bool
    is_lower_first: bool
    priority_default: int
    payload: PayloadRules
    sensitive: SensitivePolicy
    require: tuple[Required, ...]
    categories: Mapping[str, tuple[str, ...]] = {}
    errors: ErrorBounds = ErrorBounds()
    check_types: bool = True
    tasks: Mapping[str, TaskSettings] = {}
    tenants: Mapping[str, TenantRules] = {}
    schedules: Mapping[str, Mapping[str, Any]] = {}
    worker: WorkerSettings = WorkerSettings()
    retention: Retention = Retention()
    archive: ArchiveSettings = NO_ARCHIVE
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    events: EventSettings = EventSettings()
    audit: AuditSettings = AuditSettings()
    web: WebSettings = WebSettings()
    doctor: DoctorSettings = DoctorSettings()

    def __repr__(self) -> str:
        """Show the name only; the URL may hold a password."""
        return f"<Settings of {self.name}>"

    def queue(self, name: str) -> Queue:
        """Return a queue's policy; a queue that only a task names has the defaults."""
        return self.queues.get(name) or replace(self.queue_defaults, name=name)


def settings_of(
    *,
    url: str | None = None,
    name: str = "fairlane",
    queues: Sequence[Queue] = (),
    lanes: Sequence[Lane] = (),
    gates: Sequence[Gate] = (),
    breakers: Sequence[Breaker] = (),
    budgets: Sequence[Budget] = (),
    tenancy: Tenancy = "open",
    imports: Sequence[str] = (),
    fixed_queues: bool = False,
    priority: Direction = "higher_first",
    priority_default: int = 0,
    payload: PayloadSettings | None = None,
    errors: ErrorSettings | None = None,
) -> Settings:
    """Return checked settings; `ConfigError` names the first wrong key."""
    if url is not None and not is_text(url):
        _refuse("url", f"it is of type {type(url).__name__}", "a text such as sqlite:///fairlane.db, or None")
    hint = name_hint(name)
    if hint is not None:
        _refuse("name", f"{shown(name)} is not a legal name", hint)
    kinds = (
        ("queues", queues, Queue),
        ("lanes", lanes, Lane),
        ("gates", gates, Gate),
        ("budgets", budgets, Budget),
        ("breakers", breakers, Breaker),
    )
    for key, values, kind in kinds:
        _all_of(key, values, kind, f"a list of {kind.__name__}(...)")
    _all_of("imports", imports, str, "a list of module names")
    flag("fixed_queues", fixed_queues)
    instance("payload", payload, Mapping, "a dict as the table of that name", is_optional=True)
    _one_of("tenancy", tenancy, get_args(Tenancy))
    _one_of("priority", priority, get_args(Direction))
    if not is_priority(priority_default):
        _refuse("priority_default", f"{shown(priority_default)} is not a priority", f"{LOWEST} to {HIGHEST}")
    _once("queues", [queue.name for queue in queues])
    _once("lanes", [lane.name for lane in lanes])
    _once("gates", [gate.name for gate in gates])
    _once("breakers", [one.name for one in breakers])
    _once("budgets", [budget.name for budget in budgets])
    known = {DEFAULT_QUEUE: Queue(DEFAULT_QUEUE), **{queue.name: queue for queue in queues}}
    if queues:
        _served("lanes", lanes, known)
    rules, sensitive, require = _payload(payload or {})
    return Settings(
        url=url,
        name=name,
        queues=known,
        has_open_queues=not queues,
        lanes=tuple(lanes),
        gates=tuple(gates),
        breakers=tuple(breakers),
        budgets=tuple(budgets),
        tenancy=tenancy,
        imports=tuple(imports),
        fixed_queues=fixed_queues,
        is_lower_first=priority == "lower_first",
        priority_default=priority_default,
        payload=rules,
        sensitive=sensitive,
        require=require,
        errors=_errors(errors),
        categories=_categories((payload or {}).get("categories", {})),
        check_types=_flag("payload.check_types", (payload or {}).get("check_types", True)),
    )


def _payload(table: PayloadSettings) -> tuple[PayloadRules, SensitivePolicy, tuple[Required, ...]]:
    allowed = ", ".join(PayloadSettings.__annotations__)
    for key in table:
        if key not in PayloadSettings.__annotations__:
            _refuse(f"payload.{key}", "there is no such key", allowed)
    defaults = PayloadRules()
    sizes: dict[str, int] = {}
    for key in ("warn_over", "max_size", "max_depth"):
        size: object = table.get(key, getattr(defaults, key))
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            _refuse(f"payload.{key}", f"it is {shown(size)}", "a whole number, 1 or more")
        sizes[key] = size
    sensitive: SensitivePolicy = table.get("sensitive", "warn")
    _one_of("payload.sensitive", sensitive, get_args(SensitivePolicy))
    require = table.get("require", ())
    _all_of("payload.require", require, str, f"a list of {', '.join(get_args(Required))}")
    for field in require:
        _one_of("payload.require", field, get_args(Required))
    try:
        return PayloadRules(**sizes), sensitive, tuple(require)
    except ValueError as error:
        raise ConfigError(str(error), key="payload.max_depth") from None


def _errors(table: object) -> ErrorBounds:
    """Return how much of an error is stored."""
    if table is None:
        return ErrorBounds()
    wanted = ", ".join(f"{key}: {least} to {most}" for key, (least, most) in ERROR_CHARS.items())
    if not isinstance(table, Mapping):
        _refuse("errors", f"it is {shown(table)}", wanted)
    bounds: dict[str, int] = {}
    for key, value in cast("Mapping[object, object]", table).items():
        if not isinstance(key, str) or key not in ERROR_CHARS:
            _refuse(f"errors.{shown(key)}", "there is no such key", ", ".join(ERROR_CHARS))
        least, most = ERROR_CHARS[key]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            _refuse(f"errors.{key}", f"it is {shown(value)}", f"a whole number, {least} to {most}")
        bounds[key] = value
    return ErrorBounds(**bounds)


def _categories(table: object) -> dict[str, tuple[str, ...]]:
    """Return the required arguments of each category of payloads."""
    key, wanted = "payload.categories", "names of categories, each with a list of argument names"
    if not isinstance(table, Mapping):
        _refuse(key, f"it is {shown(table)}", wanted)
    categories: dict[str, tuple[str, ...]] = {}
    for name, fields in cast("Mapping[object, object]", table).items():
        hint = name_hint(name)
        if hint is not None:
            _refuse(key, f"{shown(name)} is not a legal name", hint)
        _all_of(f"{key}.{name}", fields, str, "a list of argument names")
        categories[str(name)] = tuple(cast("Sequence[str]", fields))
    return categories


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        _refuse(key, f"it is {value!r}", "true or false")
    return value


def _served(key: str, lanes: Iterable[Lane], known: Mapping[str, Queue]) -> None:
    for lane in lanes:
        for queue in lane.shares():
            if queue not in known:
                _refuse(
                    key, f"lane {lane.name} serves queue {queue}, which is not declared", ", ".join(known)
                )


def _once(key: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        _refuse(key, f"{', '.join(twice)} is declared twice", "each name once")


def _all_of(key: str, values: object, kind: type, wanted: str) -> None:
    """Refuse anything but a list of values of one class."""
    if not is_listed(values):
        what = "it is one text" if isinstance(values, str) else f"it is {shown(values)}"
        _refuse(key, what, wanted)
    for value in values:
        if not isinstance(value, kind):
            _refuse(key, f"{shown(value)} is in it", wanted)


def _one_of(key: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        _refuse(key, f"{shown(value)} is not one of its values", ", ".join(allowed))


def _refuse(key: str, message: str, allowed: str) -> NoReturn:
    raise ConfigError(f"{message}.", key=key, allowed=allowed)
