"""Programs from Debian's packages: fetched once and completely, or a reason."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers import debian

APT = """#!/bin/sh
case "$*" in *update*) exit 0;; esac
echo fetched >>"$LEDGER"
for word in "$@"; do case $word in Dir::Cache::Archives=*) : >"${word#*=}/one.deb"; esac; done
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" "$3/usr/lib/any-linux-gnu"
printf '#!/bin/sh\\necho "$LD_LIBRARY_PATH"\\n' >"$3/usr/bin/oracle"
chmod +x "$3/usr/bin/oracle"
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an apt-get and a dpkg of our own before the real ones, and the cache into a new folder."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr(debian, "_PLACES", str(folder))
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("FAIRLANE_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    debian._find.cache_clear()
    return folder


def put(folder: Path, **tools: str) -> None:
    """Write programs."""
    for name, text in tools.items():
        path = folder / name.replace("_", "-")
        path.write_text(text)
        path.chmod(0o755)


def test_a_program_is_fetched_once_and_runs_with_its_own_libraries(tools: Path, tmp_path: Path) -> None:
    """However many ask at the same time."""
    put(tools, apt_get=APT, dpkg=DPKG)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: debian._find.__wrapped__("oracle", "oracle"), range(4)))
    (program,) = found
    assert isinstance(program, debian.Program)
    done = subprocess.run(  # noqa: S603 (our own text)
        [program.path], env=program.environment(), capture_output=True, text=True, check=True
    )
    assert "oracle/usr/lib/any-linux-gnu" in done.stdout
    assert (tmp_path / "ledger").read_text() == "fetched\n"


def test_an_installed_program_is_used_as_it_is(tools: Path) -> None:
    """Nothing is fetched, and the child's libraries are the system's."""
    put(tools, oracle=DPKG)
    assert debian.find("oracle") == debian.Program(tools / "oracle")


def test_where_there_is_no_apt_that_is_said(tools: Path) -> None:
    """No guess at other systems."""
    assert not list(tools.iterdir())
    with pytest.raises(LookupError, match="oracle is not installed, and there is no apt-get"):
        debian.find("oracle")


def test_a_failed_fetch_says_why_and_leaves_nothing(tools: Path, tmp_path: Path) -> None:
    """The next run tries again; this one does not wait a second time."""
    put(tools, apt_get="#!/bin/sh\necho no network >&2\necho tried >>$LEDGER\nexit 100\n", dpkg=DPKG)
    for _ in range(2):
        with pytest.raises(
            LookupError, match="oracle is not installed, and could not be fetched: no network"
        ):
            debian.find("oracle")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["oracle.lock"]
    assert len((tmp_path / "ledger").read_text().splitlines()) == 2  # with the system's lists, with new ones
