"""The declaration of a task, checked when it is registered, and the registry of names. Runs no handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import iscoroutinefunction, signature
from logging import getLogger
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.config.units import SIZES, bytes_of
from fairlane.app.enqueue import checks
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.settings import TaskSettings
from fairlane.app.task.handler import Handler
from fairlane.app.task.subscriber import check_subscriber
from fairlane.model.checking import shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import Classifier
from fairlane.model.instants import DAY, SECOND, Duration, to_micros
from fairlane.model.job import DedupUntil, OnStuck
from fairlane.model.names import name_hint, task_hint
from fairlane.model.payload.upcast import Upcasters
from fairlane.model.policy.declared import Breaker, Budget, Gate
from fairlane.model.policy.limits import Rate
from fairlane.model.retry.backoff import Backoff, RetryPolicy, check_retry
from fairlane.model.retry.own_delay import RetryDelay

_log: Final = getLogger("fairlane")

OnShutdown: TypeAlias = Literal["finish", "requeue"]
OnBadResult: TypeAlias = Literal["drop", "dead"]
"""What happens to a job whose result is too large or cannot be encoded (S34)."""
Isolation: TypeAlias = Literal["auto", "process"]
"""Where a handler runs: in the worker's loop or a thread of it, or in a child process."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its handler and the options of its decorator. A `timeout` of UNSET means the queue's.

    `priority` counts in the application's direction; None means its default. `events` are the kinds of events
    that it subscribes to. `is_published_only`: the task is known only from what workers have published, and
    has no handler here.
    """

    name: str
    handler: Handler
    upcasters: Upcasters
    queue: str
    aliases: tuple[str, ...] = ()
    version: int = 1
    priority: int | None = None
    timeout: Duration | UnsetType | None = UNSET
    soft_timeout: Duration | None = None
    stuck_after: Duration | None = None
    on_stuck: OnStuck | None = None
    max_attempts: int | None = None
    retry: RetryPolicy | None = None
    retry_delay: RetryDelay | None = None
    classify: Classifier | None = None
    gate: str | Gate | None = None
    breaker: str | Breaker | None = None
    budget: str | Budget | None = None
    rate: Rate | None = None
    system: bool = False
    at_most_once: bool = False
    keep_result: bool = True
    on_bad_result: OnBadResult = "drop"
    on_shutdown: OnShutdown = "finish"
    dedup_until: DedupUntil = "settled"
    isolation: Isolation = "auto"
    max_memory: int | None = None
    sensitive: tuple[str, ...] = ()
    category: str | None = None
    events: tuple[str, ...] = ()
    is_published_only: bool = False

    @property
    def breaker_name(self) -> str | None:
        """The name of its breaker."""
        return self.breaker.name if isinstance(self.breaker, Breaker) else self.breaker

    def implied_attempts(self) -> int | None:
        """Return the attempts the task asks for: as given, or implied by its list of delays (S26)."""
        if self.max_attempts is not None:
            return self.max_attempts
        return self.retry.implied_attempts if isinstance(self.retry, Backoff) else None

    def check_isolation(self) -> None:
        """Refuse a bound of memory where nothing could enforce it: in the worker's own process."""
        if self.max_memory is not None and self.isolation != "process":
            _refuse(self.name, 'max_memory needs isolation="process": the memory of a worker is shared')

    def check_times(self, queue_timeout: Duration | None = None, source: str = "its timeout") -> None:
        """Refuse a soft timeout above the hard one, which would never be raised, and a stuck limit below it.

        `queue_timeout` applies to a task without a timeout of its own.
        """
        hard = queue_timeout if isinstance(self.timeout, UnsetType) else self.timeout
        if hard is None:
            return
        where = source if self.timeout is UNSET else "its timeout"
        if self.stuck_after is not None and to_micros(self.stuck_after) <= to_micros(hard):
            limit = _seconds(self.stuck_after)
            text = "use more: else a job is taken back that may still run"
            _refuse(self.name, f"stuck_after is {limit}, not above {where}, {_seconds(hard)}; {text}")
        if self.soft_timeout is not None and to_micros(self.soft_timeout) > to_micros(hard):
            _refuse(
                self.name,
                f"soft_timeout is {_seconds(self.soft_timeout)}, above {where}, {_seconds(hard)}; "
                "use at most that, or raise the timeout",
            )


def with_task_settings(declaration: Declaration, configured: Mapping[str, TaskSettings]) -> Declaration:
    """Return a declaration with the values of `[tasks]` in place of those of its decorator."""
    settings = configured.get(declaration.name)
    if settings is None:
        return declaration
    fields = ((name, getattr(settings, name)) for name in settings.__struct_fields__)
    return msgspec.structs.replace(
        declaration, **{name: value for name, value in fields if value is not UNSET}
    )


class TaskRegistry:
    """The tasks of an application by name and alias. Each name is unique."""

    def __init__(self) -> None:
        self._by_name: dict[str, Declaration] = {}

    def __iter__(self) -> Iterator[Declaration]:
        """Yield each task once, in the order of registration."""
        return (declaration for name, declaration in self._by_name.items() if name == declaration.name)

    def find(self, name: str) -> Declaration | None:
        """Return the task with this name or alias."""
        return self._by_name.get(name)

    def has(self, declaration: Declaration) -> bool:
        """Whether exactly this task is registered here."""
        return self._by_name.get(declaration.name) is declaration

    def has_queue(self, queue: str) -> bool:
        """Whether any task has this home queue."""
        return any(declaration.queue == queue for declaration in self._by_name.values())

    def add(self, *declarations: Declaration) -> None:
        """Register tasks under all their names; none of them if one name is taken."""
        for declaration in declarations:
            for name in (declaration.name, *declaration.aliases):
                other = self._by_name.get(name, declaration)
                if other is not declaration:
                    raise ConfigError(
                        f"the name is taken by {_where(other)}; give one of the two a name=",
                        key=f"task {name}",
                    )
        for declaration in declarations:
            for name in (declaration.name, *declaration.aliases):
                self._by_name[name] = declaration


def _where(declaration: Declaration) -> str:
    func = declaration.handler.func
    return f"{func.__module__}.{func.__qualname__}"


def declare(func: Callable[..., Any], name: str, queue: str, **options: Any) -> Declaration:
    """Return a checked declaration; `ConfigError` names the task and the wrong option."""
    for option in ("aliases", "sensitive"):
        options[option] = _texts(name, option, options.get(option, ()))
    for text in (name, *options["aliases"]):
        hint = task_hint(text)
        if hint is not None:
            _refuse(name, f"{shown(text)} is not a legal name; {hint}")
    handler = Handler(func, name)
    if options.get("events"):
        check_subscriber(handler)
    options["max_memory"] = _size(name, options.get("max_memory"))
    declaration = Declaration(name=name, handler=handler, upcasters=Upcasters(name), queue=queue, **options)
    _check_numbers(declaration)
    _check_words(declaration)
    _check_values(declaration)
    declaration.check_times()
    declaration.check_isolation()
    _warn(declaration)
    return declaration


def _size(name: str, given: Any) -> int | None:
    if given is None:
        return None
    try:
        size = bytes_of(given)
    except ValueError:
        size = 0
    if size < 1:
        _refuse(name, f"max_memory is {shown(given)}; use {SIZES}")
    return size


def _texts(name: str, option: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        _refuse(name, f"{option} is one text; give a list of names")
    if not isinstance(given, Iterable):
        _refuse(name, f"{option} is {shown(given)}; give a list of names")
    texts = tuple(cast("Iterable[object]", given))
    for text in texts:
        if not isinstance(text, str) or not text:
            _refuse(name, f"{option} has {shown(text)} in it, which is not a legal name; use texts")
    return cast("tuple[str, ...]", texts)


def _check_values(declaration: Declaration) -> None:
    """Refuse policies of the wrong class now: a worker would use them much later (S26, S43, S44)."""
    kinds: tuple[tuple[str, tuple[type, ...], str], ...] = (
        ("gate", (str, Gate), "the name of a gate, or a Gate"),
        ("breaker", (str, Breaker), "the name of a breaker, or a Breaker"),
        ("budget", (str, Budget), "the name of a budget, or a Budget"),
        ("rate", (Rate,), "a Rate, such as Rate(50, 'minute')"),
    )
    for option, kind, wanted in kinds:
        value: object = getattr(declaration, option)
        if value is not None and not isinstance(value, kind):
            _refuse(declaration.name, f"{option} is {shown(value)}; use {wanted}")
    if declaration.classify is not None and not callable(declaration.classify):
        wanted = "a function that takes an exception and returns an ErrorClass or None"
        _refuse(declaration.name, f"classify is {shown(declaration.classify)}; use {wanted}")
    if declaration.retry_delay is not None and not _takes_two(declaration.retry_delay):
        wanted = "a plain function that takes an exception and a number of failures"
        _refuse(declaration.name, f"retry_delay is {shown(declaration.retry_delay)}; use {wanted}")
    for option in ("system", "at_most_once", "keep_result"):
        if not isinstance(getattr(declaration, option), bool):
            _refuse(declaration.name, f"{option} is {shown(getattr(declaration, option))}; use True or False")
    if declaration.retry is not None:
        try:
            check_retry("retry", declaration.retry)
        except ConfigError as error:
            _refuse(declaration.name, str(error))


def _takes_two(function: object) -> bool:
    """Whether a value is a plain function that can be called with two arguments."""
    if not callable(function) or iscoroutinefunction(function):
        return False
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # it has no signature, as some built-in functions
        return True
    return True


def _seconds(duration: Duration) -> str:
    return f"{to_micros(duration) / SECOND:g} s"


def _check_numbers(declaration: Declaration) -> None:
    if type(declaration.version) is not int or declaration.version < 1:
        _refuse(declaration.name, f"version is {shown(declaration.version)}; versions are 1 and up")
    problems = ProblemList(0)
    if declaration.timeout is not UNSET and declaration.timeout is not None:
        checks.duration(problems, "timeout", declaration.timeout, SECOND, DAY)
    if declaration.soft_timeout is not None:
        checks.duration(problems, "soft_timeout", declaration.soft_timeout, SECOND, DAY)
    if declaration.stuck_after is not None:
        checks.duration(problems, "stuck_after", declaration.stuck_after, SECOND, 30 * DAY)
    if declaration.priority is not None:
        checks.priority(problems, "priority", declaration.priority)
    if declaration.max_attempts is not None:
        checks.attempts(problems, "max_attempts", declaration.max_attempts)
    for problem in problems.found:
        _refuse(declaration.name, f"{problem.field} {problem.message}; {problem.hint}")


def _check_words(declaration: Declaration) -> None:
    names = (declaration.name, *declaration.aliases)
    if len(set(names)) != len(names):
        _refuse(declaration.name, "an alias is named twice")
    allowed: tuple[tuple[str, Any], ...] = (
        ("on_shutdown", OnShutdown),
        ("on_bad_result", OnBadResult),
        ("dedup_until", DedupUntil),
        ("isolation", Isolation),
        *((("on_stuck", OnStuck),) if declaration.on_stuck is not None else ()),
    )
    for option, values in allowed:
        if getattr(declaration, option) not in get_args(values):
            shown_value = shown(getattr(declaration, option))
            _refuse(declaration.name, f"{option} is {shown_value}; use {' or '.join(get_args(values))}")
    for option in ("queue", "gate", "breaker", "budget", "category"):
        named: object = getattr(declaration, option)
        is_checked = (
            isinstance(named, str) or option == "queue" or (option == "category" and named is not None)
        )
        hint = name_hint(named) if is_checked else None
        if hint is not None:
            _refuse(declaration.name, f"{shown(named)} is not a legal name of a {option}; {hint}")


def _warn(declaration: Declaration) -> None:
    """Warn about what a declaration gives up (S31, S43)."""
    if declaration.timeout is None and declaration.stuck_after is None:
        _log.warning(
            "task %s has neither a timeout nor stuck_after: a job that hangs is never stopped",
            declaration.name,
            extra={"event": "task_without_timeout", "task": declaration.name},
        )
    is_in_thread = not declaration.handler.is_async and declaration.isolation != "process"
    if declaration.gate is not None and is_in_thread:
        _log.warning(
            "task %s has a gate and a plain function as handler: after a timeout its thread may go on, and "
            "the gate no longer counts it",
            declaration.name,
            extra={"event": "gated_thread_task", "task": declaration.name},
        )


def _refuse(name: str, message: str) -> NoReturn:
    raise ConfigError(message, key=f"task {name}")
