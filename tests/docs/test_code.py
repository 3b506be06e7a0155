"""The Python on our pages runs, and the commands on them exist.

A block marked `python` is run, in the order of its page and in one namespace per page: as a doctest if it
has a prompt, else as it stands. A block marked `python sketch` shows what cannot run here (a call that needs
a store); it must still be Python. A block marked `python file=NAME` belongs to a story, see test_sessions.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane
from tools.pages import ROOT, Block, blocks, pages

PAGES = [page for page in pages() if "```py" in page.read_text(encoding="utf-8")]


def run(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    """Run one block of Python, or only read it if it is a sketch."""
    source = "\n" * (block.line - 1) + block.text  # so that a failure names the page's own line
    if block.info == "python sketch" or block.info.startswith("python file="):
        compile(source, page.name, "exec", dont_inherit=True)
    elif block.info != "python":
        pytest.fail(
            f"{page.name}:{block.line}: mark Python as `python` or `python sketch`, not {block.info!r}"
        )
    elif ">>> " in block.text:
        test = doctest.DocTestParser().get_doctest(
            block.text, namespace, page.name, str(page), block.line - 1
        )
        runner = doctest.DebugRunner()
        runner.run(test, clear_globs=False)
        namespace.update(test.globs)
    else:
        exec(compile(source, page.name, "exec", dont_inherit=True), namespace)  # noqa: S102 (our own page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader copies does what the page says."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    try:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.info.startswith("py"):
                run(block, page, namespace)
    finally:
        for value in namespace.values():
            if isinstance(value, Fairlane):
                value.close()


@pytest.mark.parametrize(
    ("info", "text", "error"),
    [
        ("python", "x = 1\nassert x == 2\n", AssertionError),
        ("python", ">>> 1 + 1\n3\n", doctest.DocTestFailure),
        ("python", ">>> 1 / 0\n", doctest.UnexpectedException),
        ("python sketch", "def f(:\n", SyntaxError),
        ("py", "x = 1\n", pytest.fail.Exception),
    ],
)
def test_python_that_does_not_run_is_found(info: str, text: str, error: type[BaseException]) -> None:
    """The check can fail."""
    with pytest.raises(error):
        run(Block(info, 1, text), Path("page.md"), {})


def test_every_make_target_that_a_page_names_exists() -> None:
    """Nobody is sent to a command that is not there."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    code = re.compile(r"`make ([a-z-]+)|^\s*(?:\$ )?make ([a-z-]+)", re.MULTILINE)
    named = {a or b for page in pages() for a, b in code.findall(page.read_text(encoding="utf-8"))}
    assert {"test", "demo"} <= named
    assert named - targets == set()
