"""MODULE:APP: found in the current folder, and a clear message if it is not there."""

from __future__ import annotations

import pytest

from tests.cli.shell import Shell

GOOD = "from fairlane import Fairlane\napp = Fairlane({url!r}, imports=['more_jobs'])\nhidden = {{'x': 1}}\n"
MORE = "from good import app\n@app.task(name='late')\ndef late() -> None: ...\n"


@pytest.fixture
def project(store: Shell) -> Shell:
    """A folder with a good application and several bad ones."""
    store.write("good.py", GOOD.format(url=store.url))
    store.write("more_jobs.py", MORE)
    store.write("broken.py", "import os\nimport no_such_module_here\n")
    store.write("typo.py", "import os\nx = (1,\n")
    store.write("raises.py", "def boom():\n    raise RuntimeError('no database')\n\nboom()\n")
    store.write("declares.py", "from fairlane import Fairlane\napp = Fairlane(name='No Name')\n")
    store.write("homeless.py", "from fairlane import Fairlane\napp = Fairlane()\n")
    return store


def test_an_application_is_found_beside_the_command_with_all_its_imports(project: Shell) -> None:
    """The tasks of `imports=` are known, too."""
    assert project.run("--app", "good:app", "enqueue", "late").code == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("good", "app: 'good' is not a valid name. Allowed: MODULE:APP, as in shop.jobs:app."),
        ("good:", "app: 'good:' is not a valid name."),
        ("good:ap", "app: good:ap does not exist. Allowed: good:app."),
        ("good:hidden", "app: good:hidden is not a Fairlane application. Allowed: good:app."),
        ("good:app.nothing.here", "does not exist. Allowed: good:app."),
        ("nowhere:app", "app: nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("raises:app", "app: raises cannot be imported: RuntimeError: no database\n"),
        ("declares:app", "name: 'No Name' is not a legal name"),
    ],
)
def test_an_application_that_cannot_be_used_is_a_matter_of_settings(
    project: Shell, name: str, message: str
) -> None:
    """Exit code 5, one message, no traceback."""
    ran = project.run("--app", name, "jobs", "count")
    assert (ran.code, ran.out) == (5, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("name", "line", "text"),
    [
        ("broken", 2, "import no_such_module_here"),
        ("typo", 2, "x = (1,"),
        ("raises", 2, "raise RuntimeError('no database')"),
    ],
)
def test_an_import_that_fails_names_the_line(project: Shell, name: str, line: int, text: str) -> None:
    """Where to look, without a traceback through our own code."""
    ran = project.run("--app", f"{name}:app", "jobs", "count")
    assert f"\n  {project.folder / name}.py, line {line}:\n    {text}\n" in ran.err
