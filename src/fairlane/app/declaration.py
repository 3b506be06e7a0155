"""What a task was declared as, checked when it is registered, and who has which name. Runs no handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from logging import getLogger
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app import checks
from fairlane.app.checks import Sheet
from fairlane.app.handler import Handler
from fairlane.app.settings import TaskSettings
from fairlane.model.checking import shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import Classifier
from fairlane.model.instants import DAY, SECOND, Duration, to_micros
from fairlane.model.job import DedupUntil
from fairlane.model.limits import Rate
from fairlane.model.names import name_hint, task_hint
from fairlane.model.policy import Breaker, Budget, Gate
from fairlane.model.retry import Backoff, RetryPolicy, check_retry
from fairlane.model.upcast import Upcasters

_log: Final = getLogger("fairlane")

Isolation: TypeAlias = Literal["auto", "process"]
OnShutdown: TypeAlias = Literal["finish", "requeue"]
OnBadResult: TypeAlias = Literal["drop", "dead"]
"""What becomes of a job whose result is too large or cannot be encoded (S34)."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its handler and all that its decorator said. A `timeout` that is UNSET is the queue's.

    `priority` counts as the application does; None means the application's default. A task that
    `is_elsewhere` is known from what workers have published; its handler is not here.
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
    max_attempts: int | None = None
    retry: RetryPolicy | None = None
    classify: Classifier | None = None
    isolation: Isolation = "auto"
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
    sensitive: tuple[str, ...] = ()
    is_elsewhere: bool = False

    def implied_attempts(self) -> int | None:
        """How many attempts the task asks for: given, or implied by its list of delays (S26)."""
        if self.max_attempts is not None:
            return self.max_attempts
        return self.retry.implied_attempts if isinstance(self.retry, Backoff) else None

    def check_times(self, usual: Duration | None = None, source: str = "its timeout") -> None:
        """Refuse a soft timeout that comes after the hard one: nobody would ever hear of it.

        `usual` is the queue's timeout, for a task that has none of its own.
        """
        hard = usual if isinstance(self.timeout, UnsetType) else self.timeout
        if self.soft_timeout is None or hard is None:
            return
        if to_micros(self.soft_timeout) > to_micros(hard):
            where = source if self.timeout is UNSET else "its timeout"
            _refuse(
                self.name,
                f"soft_timeout is {_seconds(self.soft_timeout)}, above {where}, {_seconds(hard)}; "
                "use at most that, or raise the timeout",
            )


def in_force(said: Declaration, configured: Mapping[str, TaskSettings]) -> Declaration:
    """Lay what a configuration says of a task over what its decorator says."""
    over = configured.get(said.name)
    if over is None:
        return said
    fields = ((name, getattr(over, name)) for name in over.__struct_fields__)
    return msgspec.structs.replace(said, **{name: value for name, value in fields if value is not UNSET})


class Registry:
    """The tasks of an application, by name and alias; no name is given twice."""

    def __init__(self) -> None:
        self._by_name: dict[str, Declaration] = {}

    def __iter__(self) -> Iterator[Declaration]:
        """Give each task once, in the order of registration."""
        return (said for name, said in self._by_name.items() if name == said.name)

    def find(self, name: str) -> Declaration | None:
        """Give the task of a name or alias."""
        return self._by_name.get(name)

    def has(self, declaration: Declaration) -> bool:
        """Whether exactly this task is registered here."""
        return self._by_name.get(declaration.name) is declaration

    def has_queue(self, queue: str) -> bool:
        """Whether a queue is the home of any task."""
        return any(declaration.queue == queue for declaration in self._by_name.values())

    def add(self, *declarations: Declaration) -> None:
        """Register tasks under all their names, or none of them if a name is taken."""
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


def declare(func: Callable[..., Any], name: str, queue: str, **said: Any) -> Declaration:
    """Make a checked declaration; `ConfigError` names the task and the option that is wrong."""
    for option in ("aliases", "sensitive"):
        said[option] = _texts(name, option, said.get(option, ()))
    for text in (name, *said["aliases"]):
        hint = task_hint(text)
        if hint is not None:
            _refuse(name, f"{shown(text)} is not a legal name; {hint}")
    handler = Handler(func, name)
    declaration = Declaration(name=name, handler=handler, upcasters=Upcasters(name), queue=queue, **said)
    _check_numbers(declaration)
    _check_words(declaration)
    _check_values(declaration)
    declaration.check_times()
    _warn(declaration)
    return declaration


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


def _check_values(said: Declaration) -> None:
    """Refuse policies of the wrong class: each is asked long after, by a worker (S26, S43, S44)."""
    kinds: tuple[tuple[str, tuple[type, ...], str], ...] = (
        ("gate", (str, Gate), "the name of a gate, or a Gate"),
        ("breaker", (str, Breaker), "the name of a breaker, or a Breaker"),
        ("budget", (str, Budget), "the name of a budget, or a Budget"),
        ("rate", (Rate,), "a Rate, such as Rate(50, 'minute')"),
    )
    for option, kind, wanted in kinds:
        value: object = getattr(said, option)
        if value is not None and not isinstance(value, kind):
            _refuse(said.name, f"{option} is {shown(value)}; use {wanted}")
    if said.classify is not None and not callable(said.classify):
        wanted = "a function that takes an exception and returns an ErrorClass or None"
        _refuse(said.name, f"classify is {shown(said.classify)}; use {wanted}")
    for option in ("system", "at_most_once", "keep_result"):
        if not isinstance(getattr(said, option), bool):
            _refuse(said.name, f"{option} is {shown(getattr(said, option))}; use True or False")
    if said.retry is not None:
        try:
            check_retry("retry", said.retry)
        except ConfigError as error:
            _refuse(said.name, str(error))


def _seconds(duration: Duration) -> str:
    return f"{to_micros(duration) / SECOND:g} s"


def _check_numbers(said: Declaration) -> None:
    if type(said.version) is not int or said.version < 1:
        _refuse(said.name, f"version is {shown(said.version)}; versions are 1 and up")
    sheet = Sheet(0)
    if said.timeout is not UNSET and said.timeout is not None:
        checks.duration(sheet, "timeout", said.timeout, SECOND, DAY)
    if said.soft_timeout is not None:
        checks.duration(sheet, "soft_timeout", said.soft_timeout, SECOND, DAY)
    if said.priority is not None:
        checks.priority(sheet, "priority", said.priority)
    if said.max_attempts is not None:
        checks.attempts(sheet, "max_attempts", said.max_attempts)
    for problem in sheet.problems:
        _refuse(said.name, f"{problem.field} {problem.message}; {problem.hint}")


def _check_words(said: Declaration) -> None:
    names = (said.name, *said.aliases)
    if len(set(names)) != len(names):
        _refuse(said.name, "an alias is named twice")
    allowed: tuple[tuple[str, Any], ...] = (
        ("isolation", Isolation),
        ("on_shutdown", OnShutdown),
        ("on_bad_result", OnBadResult),
        ("dedup_until", DedupUntil),
    )
    for option, values in allowed:
        if getattr(said, option) not in get_args(values):
            shown_value = shown(getattr(said, option))
            _refuse(said.name, f"{option} is {shown_value}; use {' or '.join(get_args(values))}")
    for option in ("queue", "gate", "breaker", "budget"):
        named: object = getattr(said, option)
        hint = name_hint(named) if isinstance(named, str) or option == "queue" else None
        if hint is not None:
            _refuse(said.name, f"{shown(named)} is not a legal name of a {option}; {hint}")


def _warn(said: Declaration) -> None:
    """Say what a declaration gives up (S31, S43)."""
    if said.timeout is None:
        _log.warning(
            "task %s has no timeout: a job of it that hangs is never noticed",
            said.name,
            extra={"event": "task_without_timeout", "task": said.name},
        )
    if said.gate is not None and not said.handler.is_async and said.isolation == "auto":
        _log.warning(
            "task %s has a gate and is a plain function: after a timeout its thread may go on, and the gate "
            "no longer counts it",
            said.name,
            extra={"event": "gated_thread_task", "task": said.name},
        )


def _refuse(name: str, message: str) -> NoReturn:
    raise ConfigError(message, key=f"task {name}")
