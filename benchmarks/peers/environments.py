"""A virtual environment for every peer, created on first use. Knows nothing of measurements.

What goes in is pinned in `requirements/NAME.txt` and comes from whatever package index the machine is set up
with; nothing is installed into the project's own environment.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
CACHE: Final = ROOT / ".peers"
REQUIREMENTS: Final = Path(__file__).parent / "requirements"
OWN: Final = "project"
"""The name of the environment that runs the harness: Fairlane is measured as it is installed there."""

_READY: Final = "ready.txt"
_MOST: Final = 600.0


class NoEnvironmentError(Exception):
    """An environment could not be created; the message is the end of the installer's output."""


def python_of(name: str, cache: Path = CACHE) -> Path:
    """Return the interpreter of an environment, which may not exist yet."""
    return Path(sys.executable) if name == OWN else cache / name / "bin" / "python"


def is_ready(name: str, cache: Path = CACHE) -> bool:
    """Whether an environment exists and has what its requirements ask for."""
    if name == OWN:
        return True
    noted = cache / name / _READY
    return noted.is_file() and noted.read_text(encoding="utf-8") == _wanted(name)


def make_ready(name: str, say: Callable[[str], None], cache: Path = CACHE) -> Path:
    """Return the interpreter of an environment, created if needed; `NoEnvironmentError` if that fails."""
    if not is_ready(name, cache):
        say(f"making the environment {cache / name}")
        _make(cache / name, REQUIREMENTS / f"{name}.txt")
        (cache / name / _READY).write_text(_wanted(name), encoding="utf-8")
    return python_of(name, cache)


def _wanted(name: str) -> str:
    """Return what an environment must contain. All use this process's Python."""
    pinned = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    return f"# Python {platform.python_version()}\n{pinned}"


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    _run([sys.executable, "-m", "venv", *(["--without-pip"] if _uv() else []), str(folder)])
    install = ["install", "--quiet", "-r", str(requirements)]
    try:
        if uv := _uv():
            _run([uv, "pip", *install, "--python", str(python)])
        else:
            _run([str(python), "-m", "pip", *install, "--disable-pip-version-check"])
    except NoEnvironmentError:
        if not _uv():
            raise
        # pip reads settings of its own, so it may find an index where uv does not.
        _run([str(python), "-m", "ensurepip", "--default-pip"])
        _run([str(python), "-m", "pip", *install, "--disable-pip-version-check"])


def _uv() -> str | None:
    """Find uv on the path, or beside the interpreter."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_MOST)  # noqa: S603 (ours)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip().splitlines() or [f"{command[0]} failed"]
        raise NoEnvironmentError(" ".join(words[-2:])) from error
    except subprocess.TimeoutExpired as error:
        raise NoEnvironmentError(f"not installed after {_MOST:.0f} s") from error
