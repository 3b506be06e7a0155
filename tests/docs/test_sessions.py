"""Pages that tell a story are played: their files are written, their commands run, their output compared.

A block marked `python file=NAME` or `sh file=NAME` is a file of the story; later ones replace it. In a block
marked `console` each line after `$ ` is a command, and what follows is what it prints, where `…` stands for
anything.
What `$ export NAME=VALUE` sets holds until the end of the story. A story that names a PostgreSQL database,
as `DATABASE_URL` or `TEST_DATABASE_URL`, gets an empty one, which is dropped at its end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.servers.postgres import shared_url
from tools.pages import ROOT, Block, blocks, pages

FILE = " file="
EXPORT = "export "
DATABASES = ("DATABASE_URL", "TEST_DATABASE_URL")
"""What a page calls its PostgreSQL database."""
STORIES = [page for page in pages() if f"```python{FILE}" in page.read_text(encoding="utf-8")]


def commands(text: str) -> list[tuple[str, str]]:
    r"""Return each command of a console block with what it prints.

    >>> commands("$ ls\na\nb\n$ true\n")
    [('ls', 'a\nb'), ('true', '')]
    """
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, printed.strip()) for command, _, printed in (part.partition("\n") for part in parts)]


def is_like(printed: str, told: str) -> bool:
    """Whether output is what a page tells, `…` standing for anything."""
    pattern = ".*".join(re.escape(part) for part in told.split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@contextmanager
def variables_for(text: str) -> Iterator[dict[str, str]]:
    """Make a database if the page names one, and return the variables that lead to it."""
    if DATABASES[0] not in text:
        yield {}
        return
    name = f"story_{uuid4().hex}"
    with psycopg.connect(shared_url(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield dict.fromkeys(DATABASES, urlsplit(shared_url())._replace(path=f"/{name}").geturl())
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def play(block: Block, folder: Path, exported: dict[str, str]) -> None:
    """Write a file, or run the commands of a block; add what they export."""
    if FILE in block.info:
        path = folder / block.info.partition(FILE)[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment["COLUMNS"] = "200"
    for command, told in commands(block.text):
        if command.startswith(EXPORT):
            name, _, value = command.removeprefix(EXPORT).partition("=")
            exported[name] = value
            continue
        done = subprocess.run(  # noqa: S602 (our own page)
            command,
            shell=True,
            cwd=folder,
            env=environment | exported,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        shown = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        assert is_like(shown, told), f"line {block.line}: {command} printed\n{shown}\nand not\n{told}"


@pytest.mark.parametrize("page", STORIES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_story_happens_as_it_is_told(page: Path, tmp_path: Path) -> None:
    """In an empty folder, from its first block to its last."""
    text = page.read_text(encoding="utf-8")
    with variables_for(text) as exported:
        for block in blocks(text):
            if block.info == "console" or FILE in block.info:
                play(block, tmp_path, exported)


def test_the_stories_are_those_we_mean() -> None:
    """A page that is no longer found is no longer played."""
    assert {page.name for page in STORIES} == {
        "README.md",
        "come-from-celery.md",
        "deploy-without-losing-jobs.md",
        "enqueue-very-many-jobs.md",
        "limit-what-jobs-spend.md",
        "look-inside-a-worker.md",
        "open-the-dashboard.md",
        "run-jobs-on-a-schedule.md",
        "run-periodic-jobs-with-cron.md",
        "run-cpu-bound-work.md",
        "see-which-tenant-slows-whom.md",
        "share-a-worker.md",
        "survive-bad-jobs.md",
        "test-your-jobs.md",
        "troubleshoot.md",
        "use-django.md",
        "use-fastapi.md",
        "your-first-jobs.md",
    }


@pytest.mark.parametrize(
    ("printed", "told", "expected"),
    [("a\nb", "a\nb", True), ("a 17 b", "a … b", True), ("a", "b", False), ("a\nb", "a", False)],
)
def test_output_is_compared_to_the_letter_but_for_the_gaps(printed: str, told: str, expected: bool) -> None:
    """The check can fail."""
    assert is_like(printed, told) is expected
