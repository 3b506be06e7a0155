"""Declaring tasks: names, legal and illegal handlers, options, libraries, upcasts."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from enum import Enum
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

import fairlane
from fairlane import Backoff, ConfigError, Context, Fairlane, Gate, Json, Rate, Tasks
from fairlane.app.task.handler import Handler
from fairlane.model.payload.encoding import decode_arguments
from tests.app.world import World

if TYPE_CHECKING:
    from fairlane import Context as OnlyForCheckers


class Colour(Enum):
    """Named by a handler's annotations."""

    RED = "red"
    BLUE = "blue"


async def send(ctx: Context, to: str, pages: int = 1, *, colour: Colour = Colour.RED) -> str:
    """Handle with a context."""
    return f"{ctx.tenant} {to} {pages} {colour}"


def plain(x: int) -> int:
    """Handle without one."""
    return x


class Mailer:
    """Has a handler inside."""

    @staticmethod
    def send(to: str) -> None:
        """Handle."""


# ── names ────────────────────────────────────────────────────────────────────


def test_a_task_is_named_after_its_module_and_function() -> None:
    """So that a worker that imports the module finds it."""
    app = Fairlane()
    assert app.task(plain).name == f"{__name__}.plain"
    assert app.task(Mailer.send).name == f"{__name__}.Mailer.send"


def test_a_given_name_is_taken_as_it_stands_behind_the_prefix() -> None:
    """A prefix keeps the tasks of a library apart."""
    task = Fairlane().task(name="AI_TAGGING")(plain)
    assert (task.name, task.queue) == ("AI_TAGGING", "default")
    library = Tasks(prefix="billing.", queue="bulk")
    task = library.task(name="charge")(plain)
    assert (task.name, task.queue) == ("billing.charge", "bulk")


@pytest.mark.parametrize(
    ("how", "name"), [(["{path}"], "my_script.work"), (["-m", "shop.my_script"], "shop.my_script.work")]
)
def test_a_script_and_its_worker_agree_on_names(tmp_path: Path, how: list[str], name: str) -> None:
    """A task of `__main__` is named as if the file had been imported."""
    script = tmp_path / "shop" / "my_script.py"
    script.parent.mkdir()
    script.write_text(
        "from fairlane import Fairlane\n"
        "app = Fairlane()\n"
        "@app.task\n"
        "def work() -> None: ...\n"
        "if __name__ == '__main__':\n"
        "    print(work.name)\n",
        encoding="utf-8",
    )
    command = [sys.executable, *(part.format(path=script) for part in how)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)  # noqa: S603 (our own script)
    assert run.stdout.strip() == name


def test_a_handler_inside_a_function_needs_a_name() -> None:
    """No worker could find it by its place."""

    def inner() -> None:
        """Cannot be imported."""

    app = Fairlane()
    for handler in (inner, lambda: None):
        with pytest.raises(ConfigError, match="name="):
            app.task(handler)
    assert app.task(name="inner")(inner).name == "inner"


@pytest.mark.parametrize("name", ["", "has space", "-x", "x" * 201, "ä"])
def test_an_illegal_name_or_alias_is_refused(name: str) -> None:
    """S3."""
    if name:
        with pytest.raises(ConfigError, match="not a legal name"):
            Fairlane().task(name=name)(plain)
    with pytest.raises(ConfigError, match="not a legal name"):
        Fairlane().task(aliases=[name])(plain)


def test_the_same_name_twice_is_an_error() -> None:
    """It says who has it."""
    app = Fairlane()
    app.task(plain)
    with pytest.raises(ConfigError, match=rf"taken by {__name__}\.plain"):
        app.task(name=f"{__name__}.plain")(send)


def test_aliases_count_as_names() -> None:
    """Both ways round, and a refused task leaves nothing behind."""
    app = Fairlane()
    app.task(name="new", aliases=["old"])(plain)
    with pytest.raises(ConfigError, match="task old"):
        app.task(name="old")(send)
    with pytest.raises(ConfigError, match="task new"):
        app.task(name="other", aliases=["another", "new"])(send)
    assert [declared.name for declared in app.registry] == ["new"]
    assert app.registry.find("another") is None
    found = app.registry.find("old")
    assert found is not None
    assert found.name == "new"


def test_an_alias_may_not_repeat_the_name() -> None:
    """It would say nothing."""
    with pytest.raises(ConfigError, match="twice"):
        Fairlane().task(name="a", aliases=["a"])(plain)


# ── handlers ─────────────────────────────────────────────────────────────────


def any_number(*rows: int) -> None:
    """Cannot be one."""


def any_names(**rows: int) -> None:
    """Cannot be one."""


def by_position(x: int, /) -> None:
    """Cannot be one."""


def context_last(x: int, ctx: Context) -> None:
    """Cannot be one."""


def context_by_keyword(*, ctx: Context) -> None:
    """Cannot be one."""


def context_unannotated(ctx, x: int) -> None:  # type: ignore[no-untyped-def]
    """Cannot be one."""


def context_for_checkers(ctx: OnlyForCheckers, x: int) -> None:
    """Cannot be one: nobody knows at run time what its annotation means."""


def generates() -> Iterator[int]:
    """Cannot be one."""
    yield 1


async def generates_async() -> AsyncIterator[int]:
    """Cannot be one."""
    yield 1


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (any_number, r"\*rows has no fixed names"),
        (any_names, r"\*\*rows has no fixed names"),
        (by_position, "x is positional-only"),
        (context_last, "must come first"),
        (context_by_keyword, "must come first"),
        (context_unannotated, "ctx has no annotation"),
        (context_for_checkers, "ctx has no annotation"),
        (generates, "is a generator"),
        (generates_async, "is a generator"),
        (partial(plain, 1), "not a function"),
        (Mailer, "not a function"),
    ],
)
def test_a_function_that_cannot_handle_jobs_is_refused_with_the_reason(
    handler: Callable[..., Any], reason: str
) -> None:
    """When it is registered, not when its first job runs."""
    app = Fairlane()
    with pytest.raises(ConfigError, match=reason):
        app.task(handler)
    assert list(app.registry) == []


def context_by_module(ctx: fairlane.Context, x: int) -> None:
    """Its annotation is dotted."""


def lenient(ctx: dict[str, int], x: int) -> None:
    """Has an argument of that name that is something else."""


def context_by_position(ctx: Context, /, x: int) -> None:
    """The worker passes the context by position anyway."""


@pytest.mark.parametrize(
    ("handler", "takes"),
    [
        (send, True),
        (plain, False),
        (context_by_module, True),
        (context_by_position, True),
        (lenient, False),
    ],
)
def test_the_context_is_known_by_its_annotation(handler: Callable[..., Any], takes: bool) -> None:
    """First and annotated `Context`; what cannot be resolved is known by that word."""
    made = Handler(handler, "x")
    assert made.takes_context is takes
    assert len(made.signature.parameters) == len(signature(handler).parameters) - takes


def test_an_annotation_imported_for_type_checkers_alone_is_known_by_its_word() -> None:
    """`if TYPE_CHECKING: from fairlane import Context` is what linters ask for."""
    namespace: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef handle(ctx: Context, x: int): ...", namespace)  # noqa: S102 (our own text)
    assert Handler(namespace["handle"], "x").takes_context


def test_a_handler_knows_whether_it_is_async() -> None:
    """A worker awaits it, or gives it a thread."""
    assert Handler(send, "x").is_async
    assert not Handler(plain, "x").is_async


# ── binding ──────────────────────────────────────────────────────────────────


def test_arguments_are_bound_to_names_with_defaults() -> None:
    """By position or by name, the context left out."""
    task = Fairlane().task(send)
    assert task.bind("a").arguments == {"to": "a", "pages": 1, "colour": Colour.RED}
    assert task.bind("a", 3, colour=Colour.BLUE).arguments == {"to": "a", "pages": 3, "colour": Colour.BLUE}
    assert task.bind(pages=2, to="a").arguments == {"to": "a", "pages": 2, "colour": Colour.RED}


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"send\(\) missing a required argument: 'to'"),
        (("a", 1, 2), {}, r"send\(\) too many positional arguments"),
        (("a",), {"to": "b"}, r"send\(\) multiple values for argument 'to'"),
        (("a",), {"tenant": "acme"}, r"send\(\) got an unexpected keyword argument 'tenant'"),
        (("a",), {"ctx": None}, r"send\(\) got an unexpected keyword argument 'ctx'"),
    ],
)
def test_wrong_arguments_are_a_type_error_as_from_a_call(
    world: World, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    """From `bind` and from both enqueues, and the store is not asked."""
    task = world.app().task(name="send")(send)
    for call in (task.bind, task.enqueue):
        with pytest.raises(TypeError, match=message):
            call(*args, **kwargs)
    assert world.asked == []


def test_an_enum_that_the_handler_names_can_be_an_argument(world: World) -> None:
    """And comes back as itself."""
    task = world.app().task(name="send")(send)
    task.enqueue("a", colour=Colour.BLUE)
    enums = task.declared.handler.argument_enums
    assert enums == {"Colour": Colour}
    assert decode_arguments(world.one().payload, enums=enums)["colour"] is Colour.BLUE


def unresolvable(x: Missing, colour: Colour) -> Literal[Colour.RED]:  # type: ignore[name-defined]  # noqa: F821
    """One hint that cannot be resolved must not hide the others."""
    return Colour.RED


def test_a_hint_that_cannot_be_resolved_does_not_hide_the_others() -> None:
    """A name that only a type checker sees is common."""
    handler = Handler(unresolvable, "x")
    assert handler.argument_enums == {"Colour": Colour}
    assert handler.result_enums == {"Colour": Colour}


def test_a_wrapped_handler_is_read_through_its_wrapper() -> None:
    """Its annotations use the names of the module that it was written in."""
    namespace: dict[str, Any] = {"wraps": wraps}
    code = """
def wrap(func):
    @wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapper
"""
    exec(code, namespace)  # noqa: S102 (our own text)
    handler = Handler(namespace["wrap"](send), "x")
    assert handler.takes_context
    assert list(handler.signature.parameters) == ["to", "pages", "colour"]
    assert handler.argument_enums == {"Colour": Colour}


def test_the_plain_function_is_there_for_unit_tests() -> None:
    """No job is needed to test a handler."""
    assert Fairlane().task(plain).func(3) == 3


def test_a_task_is_not_called() -> None:
    """It would look as if the work were done."""
    with pytest.raises(TypeError):
        Fairlane().task(plain)(3)  # type: ignore[operator]


# ── options ──────────────────────────────────────────────────────────────────


def test_using_gives_a_new_task_and_leaves_the_old_one_alone(world: World) -> None:
    """What is given later wins; the rest shows through."""
    task = world.app().task(name="plain")(plain)
    acme = task.using(tenant="acme", tags=["a"], timeout=5)
    other = acme.using(tenant="globex", priority=3, timeout=None)
    assert acme.enqueue(1).tenant == "acme"
    job = other.enqueue(1)
    assert (job.tenant, job.priority, job.tags) == ("globex", 3, frozenset("a"))
    assert world.stored()[1].timeout is None
    assert task.enqueue(1).tenant == "system"


def test_what_the_caller_does_to_its_own_lists_afterwards_changes_nothing(world: World) -> None:
    """Options are copied when they are given."""
    tags = ["a"]
    metadata: dict[str, Json] = {"plan": "pro"}
    task = world.app().task(name="plain")(plain).using(tags=tags, metadata=metadata)
    tags.append("b")
    metadata["plan"] = "free"
    job = task.enqueue(1)
    assert job.tags == {"a"}
    assert job.metadata == {"plan": "pro"}
    assert task.using(tags=(tag for tag in "xy")).bind(1).options.tags == ("x", "y")


DECLARED: list[tuple[dict[str, Any], str]] = [
    ({"timeout": 0.5}, "timeout is 0.5 s"),
    ({"timeout": 86_401}, "timeout"),
    ({"soft_timeout": -1}, "soft_timeout"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"max_attempts": 1001}, "max_attempts"),
    ({"priority": 101}, "priority"),
    ({"version": 0}, "version"),
    ({"queue": "No Queue"}, "legal name of a queue"),
    ({"gate": "No Gate"}, "legal name of a gate"),
    ({"on_shutdown": "die"}, "on_shutdown"),
    ({"dedup_until": "never"}, "dedup_until"),
    ({"aliases": "old"}, "aliases is one text"),
    ({"sensitive": "iban"}, "sensitive is one text"),
]


@pytest.mark.parametrize(("options", "message"), DECLARED)
def test_a_bad_option_of_a_decorator_is_refused_when_the_task_is_registered(
    options: dict[str, Any], message: str
) -> None:
    """With the task's name, and nothing is registered."""
    app = Fairlane()
    with pytest.raises(ConfigError, match=message) as caught:
        app.task(name="plain", **options)(plain)
    assert caught.value.key == "task plain"
    assert list(app.registry) == []


def test_an_option_that_does_not_exist_is_a_type_error() -> None:
    """As for any function."""
    with pytest.raises(TypeError, match="queues"):
        Fairlane().task(queues=["a"])(plain)  # type: ignore[call-overload]


def test_declared_values_are_kept_as_declared() -> None:
    """For the worker, which is to act on them."""
    gate, rate, retry = Gate("screens", 3), Rate(5), Backoff.delays(1)
    declared = Fairlane().task(gate=gate, rate=rate, retry=retry, keep_result=False)(send).declared
    assert (declared.gate, declared.rate, declared.retry) == (gate, rate, retry)
    assert declared.keep_result is False


def test_registration_says_what_a_task_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    """S31: no timeout, no stuck detection. S43: a gate does not count abandoned threads."""
    with caplog.at_level(logging.WARNING, "fairlane"):
        Fairlane().task(name="a", timeout=None)(send)
        Fairlane().task(name="b", gate="screens")(plain)
        Fairlane().task(name="c", gate="screens")(send)
    found = [(record.__dict__["event"], record.__dict__["task"]) for record in caplog.records]
    assert found == [("task_without_timeout", "a"), ("gated_thread_task", "b")]


# ── libraries ────────────────────────────────────────────────────────────────


def test_a_library_brings_its_tasks_into_an_application(world: World) -> None:
    """Those that it has, and those that it declares afterwards."""
    library = Tasks(prefix="lib.", queue="bulk")
    early = library.task(name="early")(plain)
    app = world.app()
    app.include(library)
    late = library.task(name="late", queue="fast")(plain)
    jobs = app.enqueue_many([early.bind(1), late.bind(2)])
    assert [(job.task, job.queue) for job in jobs] == [("lib.early", "bulk"), ("lib.late", "fast")]
    assert early.enqueue(1).created
    app.include(library)  # twice changes nothing


def test_a_library_belongs_to_one_application() -> None:
    """Its tasks could not know which store is meant."""
    library = Tasks()
    Fairlane().include(library)
    with pytest.raises(ConfigError, match="another application"):
        Fairlane().include(library)


def test_names_must_not_clash_between_libraries_and_nothing_half_joins() -> None:
    """The application is as it was before."""
    app, library = Fairlane(), Tasks()
    app.task(name="b")(plain)
    library.task(name="a")(plain)
    library.task(name="b")(plain)
    with pytest.raises(ConfigError, match="task b"):
        app.include(library)
    assert [declared.name for declared in app.registry] == ["b"]


# ── upcasts ──────────────────────────────────────────────────────────────────


def test_an_upcast_is_kept_and_the_version_is_stored(world: World) -> None:
    """A worker brings older arguments up to today's."""
    task = world.app().task(name="plain", version=3)(plain)

    @task.upcast(1)
    def first(old: dict[str, Any]) -> dict[str, Any]:
        return {"y": old["z"]}

    @task.upcast(2)
    def second(old: dict[str, Any]) -> dict[str, Any]:
        return {"x": old["y"]}

    assert task.declared.upcasters.upcast({"z": 1}, 1, 3) == {"x": 1}
    assert first({"z": Decimal(1)}) == {"y": Decimal(1)}
    task.enqueue(1)
    assert world.one().version == 3


@pytest.mark.parametrize("version", [2, 3])
def test_an_upcast_from_todays_version_or_later_is_refused(version: int) -> None:
    """Nothing could need it."""
    task = Fairlane().task(name="plain", version=2)(plain)
    with pytest.raises(ConfigError, match="is version 2"):
        task.upcast(version)


def test_representations_show_no_values() -> None:
    """S6: a call may hold a secret."""
    task = Fairlane().task(name="plain")(plain)
    assert repr(task) == "<Task plain>"
    assert repr(task.bind(42)) == "<Call of plain(x)>"
