"""`fairlane init`: begin a project with a configuration and a task that works at once. Overwrites nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.session import Session

CONFIG: Final = """\
# What holds for the application in jobs.py; `fairlane config show` shows it, with all that is not said here.

[app]
import = "jobs:app"                # what `fairlane worker` runs if nothing is named

# The store: a file, for all processes of one machine.
url = "sqlite:///fairlane.db"
# For several machines, PostgreSQL 15 or newer, or Valkey or Redis; ${NAME} reads the environment:
# url = "postgresql://shop:${SHOP_PASSWORD}@db.example/shop"
# url = "redis://:${SHOP_PASSWORD}@cache.example:6379/0"

# Every job names the tenant it is for, so that none is forgotten. "declared" takes known tenants only;
# "open" gives a job that names none to the tenant `system`.
tenancy = "required"
"""

JOBS: Final = '''\
"""The application and its tasks. `python jobs.py` enqueues two jobs, `fairlane worker jobs:app` runs them."""

from fairlane import Context, Fairlane

app = Fairlane()  # fairlane.toml says where jobs are kept


@app.task
async def greet(ctx: Context, name: str) -> str:
    ctx.log.info("hello %s, from %s", name, ctx.tenant)
    return f"{ctx.tenant} greets {name}"


if __name__ == "__main__":
    for tenant in ("acme", "globex"):
        job = greet.using(tenant=tenant).enqueue("Ann")
        print(job.tenant, job.state, job.id)
'''

FILES: Final = {"fairlane.toml": CONFIG, "jobs.py": JOBS}


class NotWritten(click.ClickException):
    """Nothing was written; the text says why."""

    exit_code = Exit.REFUSED


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.pass_obj
def init(session: Session, folder: Path) -> None:
    """Begin a project: write fairlane.toml and jobs.py.

    Into the current folder, or into FOLDER, which is made. A file that is there is never overwritten. With
    them, every job must name its tenant, and the store is a SQLite file beside them.
    """
    paths = {folder / name: text for name, text in FILES.items()}
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        verb = "is" if len(there) == 1 else "are"
        message = f"{' and '.join(there)} {verb} there already, so nothing was written; name another folder"
        raise NotWritten(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        message = f"{error.filename or folder} cannot be written: {error.strerror}"
        raise NotWritten(message) from error
    first = "python jobs.py" if folder == Path() else f"cd {shlex.quote(str(folder))} && python jobs.py"
    ahead = [first, "fairlane worker jobs:app --burst"]
    names = " and ".join(str(path) for path in paths)
    text = f"Wrote {names}. Enqueue two jobs, then run them:\n" + "\n".join(f"  {line}" for line in ahead)
    answer = {"folder": str(folder), "written": [str(path) for path in paths], "next": ahead}
    session.output.answer(text, answer)
