"""Two type checkers agree on the public API: right uses are inferred, wrong ones are refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent
POSITIVE = (HERE / "positive.py").read_text(encoding="utf-8")
MISUSES = (HERE / "misuses.py.txt").read_text(encoding="utf-8")

Checker = Callable[[Path], dict[str, set[int]]]
"""From a folder of Python files to the lines with errors, by file; a file without errors is there too."""


def run(*command: str | Path) -> str:
    """Run a checker to its end; anything but "clean" and "errors found" is a failure of the checker."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)  # noqa: S603 (our own tool)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


def mypy(folder: Path) -> dict[str, set[int]]:
    """Check with mypy in the project's own strictness."""
    files = sorted(folder.glob("*.py"))
    output = run(BIN / "mypy", "--config-file", ROOT / "pyproject.toml", "--no-pretty", *files)
    assert f"checked {len(files)} source files" in output or f"in {len(files)} source files" in output, output
    wrong: dict[str, set[int]] = {file.name: set() for file in files}
    for file, line in re.findall(r"^(.+?):(\d+): error: ", output, re.MULTILINE):
        wrong[Path(file).name].add(int(line))
    return wrong


def pyright(folder: Path) -> dict[str, set[int]]:
    """Check with pyright in strict mode. It reads only the folder of its settings."""
    files = sorted(folder.glob("*.py"))
    settings = {
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "reportUnusedVariable": False,  # a misuse may leave a name behind
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    output = json.loads(
        run(BIN / "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", folder)
    )
    assert output["summary"]["filesAnalyzed"] == len(files), output["summary"]
    wrong: dict[str, set[int]] = {file.name: set() for file in files}
    for one in output["generalDiagnostics"]:
        wrong[Path(one["file"]).name].add(one["range"]["start"]["line"] + 1)
    return wrong


def folder_of(folder: Path, **texts: str) -> Path:
    """Write files to be checked. Misuses are no Python file in the tree: its own checks must stay clean."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def marked(text: str) -> set[int]:
    """Return the lines that say of themselves that they are wrong."""
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# error")}


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@CHECKERS
def test_right_use_is_inferred_and_exactly_the_marked_misuses_are_errors(
    checker: Checker, tmp_path: Path
) -> None:
    """Results, jobs, calls and options have the types asserted; neither more nor fewer lines are refused."""
    wrong = checker(folder_of(tmp_path, positive=POSITIVE, misuses=MISUSES))
    assert len(marked(MISUSES)) > 60
    assert {
        "positive": sorted(wrong["positive.py"]),
        "missed": sorted(marked(MISUSES) - wrong["misuses.py"]),
        "unexpected": sorted(wrong["misuses.py"] - marked(MISUSES)),
    } == {"positive": [], "missed": [], "unexpected": []}


@CHECKERS
def test_the_check_itself_notices_a_wrong_inference_and_a_wrong_mark(
    checker: Checker, tmp_path: Path
) -> None:
    """A changed assertion is an error on its line, a right use is none though it is marked."""
    asserted = "    assert_type(job.result(), str)\n"
    assert asserted in POSITIVE
    broken = POSITIVE.replace(asserted, asserted.replace("str", "int"))
    at = broken[: broken.index("job.result(), int")].count("\n") + 1
    right = MISUSES.replace(
        '    mail.enqueue(to="a", pages=2)\n', '    mail.enqueue(to="a", pages=2)  # error\n'
    )
    wrong = checker(folder_of(tmp_path, positive=broken, misuses=right))
    assert wrong["positive.py"] == {at}
    assert marked(right) - wrong["misuses.py"] == marked(right) - marked(MISUSES) != set()
