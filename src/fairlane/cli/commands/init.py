"""`fairlane init`: start a project with a configuration and a working task. Overwrites nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation

CONFIG: Final = """\
# Settings of the application in jobs.py. `fairlane config show` lists all of them, with their defaults.

[app]
import = "jobs:app"                # the application that `fairlane worker` runs by default

# The store: a file, for processes on one machine.
url = "sqlite:///fairlane.db"
# For several machines, PostgreSQL 15 or newer, or Valkey or Redis; ${NAME} reads the environment:
# url = "postgresql://shop:${SHOP_PASSWORD}@db.example/shop"
# url = "redis://:${SHOP_PASSWORD}@cache.example:6379/0"

# "required": every job must name its tenant. "declared": it must also be a known tenant.
# "open": a job that names no tenant belongs to the tenant `system`.
tenancy = "required"
"""

JOBS: Final = '''\
"""The application and its tasks. `python jobs.py` enqueues two jobs, `fairlane worker jobs:app` runs them."""

from fairlane import Context, Fairlane

app = Fairlane()  # fairlane.toml says where jobs are stored


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
    """Nothing was written; the message says why."""

    exit_code = Exit.REFUSED


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.pass_obj
def init(invocation: Invocation, folder: Path) -> None:
    """Start a project: write fairlane.toml and jobs.py.

    They go into the current folder, or into FOLDER, which is created. Existing files are never overwritten.
    The new project stores its jobs in a SQLite file, and every job must name its tenant.
    """
    paths = {folder / name: text for name, text in FILES.items()}
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        verb = "exists" if len(there) == 1 else "exist"
        message = f"{' and '.join(there)} already {verb}, so nothing was written; choose another folder"
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
    invocation.output.answer(text, answer)
