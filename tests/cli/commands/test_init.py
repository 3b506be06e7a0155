"""`fairlane init`: a project that works at once, by the very commands it prints, and overwrites nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairlane import Fairlane, TenantRequired
from fairlane.cli.commands.init import FILES
from tests.cli.shell import Shell


def shell(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run lines in a shell as people type them, with this environment's `python` and `fairlane`."""
    found = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLANE_")}
    found["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{found['PATH']}"
    return subprocess.run(  # noqa: S603 (our own commands)
        ["/bin/sh", "-e", "-c", script], capture_output=True, text=True, cwd=folder, env=found, check=False
    )


@pytest.mark.parametrize("folder", ["", "a new/shop"])
def test_the_commands_that_it_prints_work_as_they_stand(tmp_path: Path, folder: str) -> None:
    """Two jobs are enqueued for two tenants, and a worker runs them."""
    made = shell(tmp_path, f"fairlane init {folder and repr(folder)}")
    assert (made.returncode, made.stderr) == (0, "")
    first, *ahead = made.stdout.splitlines()
    assert first.startswith("Wrote ")
    assert len(ahead) == 2
    ran = shell(tmp_path, "\n".join(ahead))
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[:2] for line in ran.stdout.splitlines()] == [["acme", "ready"], ["globex", "ready"]]
    assert "2 attempts settled, 0 of them failed" in ran.stderr
    listed = shell(tmp_path / folder, "fairlane jobs list --json")
    jobs = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {(job["tenant"], job["state"]) for job in jobs} == {("acme", "succeeded"), ("globex", "succeeded")}


def test_a_worker_may_come_first(tmp_path: Path) -> None:
    """It makes the store."""
    ran = shell(tmp_path, "fairlane init && fairlane worker --burst")
    assert ran.returncode == 0, ran.stderr
    assert "0 attempts settled" in ran.stderr


def test_every_job_of_a_new_project_names_its_tenant(shell: Shell) -> None:
    """So that none is forgotten (S7)."""
    assert shell.run("init").code == 0
    config = tomllib.loads((shell.folder / "fairlane.toml").read_text(encoding="utf-8"))
    assert config["app"] == {"import": "jobs:app", "url": "sqlite:///fairlane.db", "tenancy": "required"}
    with Fairlane() as app:
        task = app.task(name="note")(lambda: None)
        with pytest.raises(TenantRequired):
            task.enqueue()


def test_programs_are_told_what_was_written_and_what_comes_next(shell: Shell) -> None:
    """As JSON."""
    (answer,) = shell.run("init", "shop", "--json").objects
    assert answer == {
        "folder": "shop",
        "written": ["shop/fairlane.toml", "shop/jobs.py"],
        "next": ["cd shop && python jobs.py", "fairlane worker jobs:app --burst"],
    }


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_there_is_never_overwritten(shell: Shell, name: str) -> None:
    """It is named, and nothing is written at all."""
    shell.write(name, "mine")
    ran = shell.run("init")
    assert (ran.code, ran.out) == (1, "")
    assert f"{name} already exists, so nothing was written" in ran.err
    assert [path.name for path in shell.folder.iterdir()] == [name]
    assert (shell.folder / name).read_text(encoding="utf-8") == "mine"
    assert shell.run("init", "--json").told["exit"] == 1


def test_a_link_that_leads_nowhere_is_not_written_through(shell: Shell) -> None:
    """A dangling symbolic link could lead anywhere."""
    (shell.folder / "jobs.py").symlink_to(shell.folder / "elsewhere.py")
    assert shell.run("init").code == 1
    assert not (shell.folder / "elsewhere.py").exists()


def test_a_folder_that_cannot_be_one_is_named(shell: Shell) -> None:
    """Without a traceback."""
    shell.write("shop", "a file")
    ran = shell.run("init", "shop")
    assert (ran.code, ran.out) == (1, "")
    assert "shop" in ran.err
    assert "cannot be written" in ran.err
