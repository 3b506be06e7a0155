"""The options by which dead letters are chosen, and the filters that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from fairlane.app.dead.filters import REVIEWS, DeadFilters
from fairlane.cli import value_types
from fairlane.model.failure import ErrorClass

F = TypeVar("F", bound=Callable[..., Any])

ALL: Final = "all"
"""The word for every review."""

_FILTERS: Final = (
    click.option("--tenant", type=value_types.TENANT, help="Of this tenant."),
    click.option("--queue", type=value_types.QUEUE, help="Of this queue."),
    click.option("--task", type=value_types.TASK, help="Of this task."),
    click.option(
        "--class",
        "error_class",
        type=click.Choice([one.value for one in ErrorClass]),
        metavar="CLASS",
        help="With a last failure of this class, such as transient or timeout.",
    ),
    click.option("--fingerprint", type=value_types.LABEL, help="With this cause, as `groups` shows it."),
    click.option(
        "--acknowledged/--unacknowledged",
        "acknowledged",
        default=None,
        help="Acknowledged by somebody, or by nobody.",
    ),
    click.option(
        "--since", type=value_types.TIME_OR_AGE, help="Died since this time, or this long ago (2h)."
    ),
)
_UNTIL: Final = click.option(
    "--until", type=value_types.TIME_OR_AGE, help="Died before this time, or longer ago than this (2h)."
)


def with_dead_filters(review: str, *, has_until: bool = True) -> Callable[[F], F]:
    """Add the filters of `app.dead.find` as options; `review` is what is chosen without `--review`."""

    def decorate(command: F) -> F:
        chosen = click.option(
            "--review",
            type=click.Choice([*REVIEWS, ALL]),
            default=review,
            show_default=True,
            help="With this review.",
        )
        for option in reversed([*_FILTERS, *([_UNTIL] if has_until else [])]):
            command = option(command)
        return chosen(command)

    return decorate


def dead_filters(options: dict[str, Any]) -> DeadFilters:
    """Return the given filters as `app.dead` takes them, and remove them from the options."""
    given: Any = {name: options.pop(name) for name in list(DeadFilters.__annotations__) if name in options}
    given["review"] = None if given["review"] == ALL else given["review"]
    return given  # type: ignore[no-any-return] # its keys are those of the options


def are_given(context: click.Context) -> bool:
    """Whether a filter was given on the command line."""
    source = click.core.ParameterSource.COMMANDLINE
    return any(context.get_parameter_source(name) is source for name in DeadFilters.__annotations__)
