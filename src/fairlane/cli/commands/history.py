"""`fairlane history`: write finished jobs into a file, and take them back from one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar, cast

import click

from fairlane import Fairlane
from fairlane.app.history.exporting import ENDED
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation
from fairlane.cli.shared_options import note

T = TypeVar("T")

_STATES = click.Choice(sorted(state.value for state in ENDED))


@click.group(cls=Group)
def history() -> None:
    """Export finished jobs, or bring them back: export, import."""


@history.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--tenant", type=value_types.TENANT, help="Of this tenant.")
@click.option("--queue", type=value_types.QUEUE, help="Of this queue.")
@click.option("--task", type=value_types.TASK, help="Of this task.")
@click.option("--state", type=_STATES, multiple=True, help="Ended so; may be repeated. Default: all three.")
@click.option(
    "--since", type=value_types.TIME_OR_AGE, help="Enqueued since this time, or this long ago (2h)."
)
@click.option("--until", type=value_types.TIME_OR_AGE, help="Enqueued before this time, or longer ago (2h).")
@click.option("--limit", type=click.IntRange(1), help="The maximum number of jobs to write.")
@click.option("--cursor", help="Continue where an export with --limit stopped.")
@note
@click.pass_obj
def export(invocation: Invocation, /, file: str, **options: Any) -> None:
    """Write finished jobs and dead letters as JSON lines into FILE, or to standard output if it is `-`.

    Everything that is stored is written, as `history import` takes it back: nothing is redacted. An existing
    file is replaced; a new one is readable by its owner alone.
    """
    options["state"] = list(options["state"]) or None
    result = _called(
        invocation,
        file,
        lambda app: app.history.aexport(invocation.output.out if file == "-" else file, **options),
    )
    invocation.output.note(f"{result.written:,} jobs written.")
    if result.cursor is not None:
        invocation.output.note(f"There may be more: continue with --cursor {result.cursor}")


@history.command("import", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@note
@click.pass_obj
def import_file(invocation: Invocation, *, file: str, note: str) -> None:
    """Bring back the finished jobs of FILE, or of standard input if it is `-`.

    FILE is one that `history export` or the archive has written, plain, gzip or Parquet. Jobs that the store
    knows are left as they are. The whole file is checked first: if a line is wrong, nothing is stored.
    """
    with _source(file) as source:
        result = _called(invocation, file, lambda app: app.history.aimport_from(source, note=note))
    text = f"{result.restored:,} jobs are back; {result.known:,} were known already."
    invocation.output.answer(text, {"restored": result.restored, "known": result.known})


def _called(invocation: Invocation, file: str, call: Callable[[Fairlane], Coroutine[Any, Any, T]]) -> T:
    try:
        return invocation.run(call)
    except OSError as error:
        raise click.FileError(file, error.strerror) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def _source(file: str) -> Generator[BinaryIO | str]:
    """Yield a path as it is, and standard input as a file that can be read twice."""
    if file != "-":
        yield file
        return
    with TemporaryFile() as copy:
        copyfileobj(sys.stdin.buffer, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)
