"""The options that say what a schedule is, the same for `add`, `edit` and `preview`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar, get_args

import click

from fairlane.app.schedules.options import DayMatch, MissingTime, Overlap, RepeatedTime
from fairlane.cli import value_types
from fairlane.cli.argument_pairs import object_of
from fairlane.model.errors import FairlaneError
from fairlane.model.names import name_hint

F = TypeVar("F", bound=Callable[..., Any])


def _name(text: str) -> str:
    hint = name_hint(text)
    if hint is not None:
        message = f"{text[:80]!r} is not a valid schedule name; {hint}"
        raise ValueError(message)
    return text


SCHEDULE: Final = value_types.ValueType("schedule", _name)

_TIMES: Final = (
    click.option("--cron", help='When: five fields, as "0 9 * * MON", or a name, as @hourly.'),
    click.option("--every", metavar="DURATION", help="When: so often (15m, 1h)."),
    click.option("--at", metavar="TIME", help="When: once, as 2026-11-25T18:00."),
    click.option("--timezone", metavar="ZONE", help="The zone of its times, as Europe/Berlin. Default: UTC."),
    click.option(
        "--between", metavar="FROM-TO", help="Only at these times of day, both included: 09:30-16:00."
    ),
    click.option("--weekdays", metavar="DAYS", help="Only on these days: MON,TUE."),
    click.option("--holidays", metavar="DATES", help="Not on these days: 2026-12-25,2026-12-26."),
    click.option(
        "--days",
        type=click.Choice(get_args(DayMatch)),
        help="Whether day of month or of week must match, or both.",
    ),
    click.option(
        "--missing",
        type=click.Choice(get_args(MissingTime)),
        help="What becomes of a local time that a change of the clock leaves out.",
    ),
    click.option(
        "--repeated",
        type=click.Choice(get_args(RepeatedTime)),
        help="Which one counts of a local time that comes twice.",
    ),
    click.option("--starts", metavar="TIME", help="No run before."),
    click.option("--ends", metavar="TIME", help="No run after."),
)
_REST: Final = (
    click.option(
        "--catch-up", metavar="skip|latest|N", help="Which missed runs are made up for. Default: latest."
    ),
    click.option("--look-back", metavar="DURATION", help="How old a run may be that is made up for."),
    click.option(
        "--overlap",
        type=click.Choice(get_args(Overlap)),
        help="What becomes of a run while the job of an earlier one is there.",
    ),
    click.option(
        "--unique-for", metavar="DURATION", help="Skip a run that comes sooner after the one before."
    ),
    click.option("--pause-after", type=int, help="Pause it after so many dead jobs in a row."),
    click.option("--tenant", type=value_types.TENANT, help="Whose jobs they are. Default: system."),
    click.option(
        "--for-tenants", metavar="LABELS", help="A job for each declared tenant with them: plan=pro."
    ),
    click.option("--spread", metavar="DURATION", help="Start the jobs of a run within this time."),
    click.option("--args", "arguments", metavar="JSON", help="The arguments of its jobs as one JSON object."),
    click.option("--queue", type=value_types.QUEUE, help="The queue of its jobs."),
    click.option("--priority", type=int, help="The priority of its jobs."),
    click.option("--max-attempts", type=int, help="The maximum number of attempts of its jobs."),
    click.option("--timeout", metavar="DURATION", help="The maximum duration of one attempt."),
    click.option("--expires-in", metavar="DURATION", help="How long after its enqueue a job may start."),
    click.option("--tag", "tags", multiple=True, help="A tag of its jobs; may be repeated."),
    click.option("--metadata", metavar="JSON", help="The metadata of its jobs as one JSON object."),
)


def with_times(command: F) -> F:
    """Add the options that say when."""
    for option in reversed(_TIMES):
        command = option(command)
    return command


def with_words(command: F) -> F:
    """Add every option of a schedule."""
    for option in reversed((*_TIMES, *_REST)):
        command = option(command)
    return command


def words_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words that were given."""
    words = {name: value for name, value in options.items() if value is not None and value != ()}
    for name, option in (("arguments", "--args"), ("metadata", "--metadata")):
        if name in words:
            words[name] = object_of(words[name], option)
    return words


@contextmanager
def refuse_values() -> Generator[None]:
    """Report a wrong value that no option could check by itself."""
    try:
        yield
    except FairlaneError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None
