"""`make proofs`: measure everything that docs/proofs shows, one after the other; exit with 1 if a run failed.

Each is written, with its page, the index and the README's figures, as soon as it is done: an interrupted run
leaves what it has measured.
"""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

import msgspec

from tools.proofs.measurement import ROOT, Measurement, commit, write
from tools.proofs.pages import write_pages
from tools.proofs.stores import STORES, measured, prefix
from tools.proofs.suite import PAGES, Page


def main() -> int:
    """Measure the requested pages, then write all pages."""
    parser = ArgumentParser(prog="make proofs", description=__doc__.partition("\n")[0])
    names = list(dict.fromkeys(one.name.removeprefix(prefix(one.store)) for one in PAGES))
    parser.add_argument("--store", choices=list(STORES), default="sqlite", help="what is measured")
    parser.add_argument("--only", action="append", choices=names, help="only this page")
    parser.add_argument("--render", action="store_true", help="measure nothing, only write the pages")
    parser.add_argument("--small", action="store_true", help="a quick look: one round of very little")
    parser.add_argument("--folder", type=Path, help="where the files go; a real disk counts")
    given = parser.parse_args()
    only = [prefix(given.store) + name for name in given.only or ()]
    wanted = [one for one in PAGES if one.store == given.store and (not only or one.name in only)]
    bad: list[str] = []
    try:
        with measured(given.store) as new_url:
            for page in () if given.render else wanted:
                url = new_url(page.name)
                if not measure(page, given.folder, small=given.small, url=url):
                    bad.append(page.name)
                write_pages()
    except KeyboardInterrupt:
        print("interrupted; what was measured before is kept", file=sys.stderr)
        return 130
    write_pages()
    if bad:
        print(f"not kept, because they failed: {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


def measure(page: Page, folder: Path | None, *, small: bool = False, url: str | None = None) -> bool:
    """Run one benchmark and store its report; nothing is stored if it failed."""
    words = page.words(small=small)
    shown = words if words[0] == "fairlane" else ("python -m", *words)
    command = " ".join((*shown, *(() if url is None else ("--url …",))))
    print(f"── {page.name}: {command}", flush=True)
    of, began = commit(), time.monotonic()
    ran = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-m", *words, *page.hidden_words(folder, url)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=False,
    )
    print(f"── {page.name}: {time.monotonic() - began:.0f} s, exit code {ran.returncode}", flush=True)
    if ran.returncode == 0:
        write(page.name, Measurement(commit=of, command=command, small=small, report=msgspec.Raw(ran.stdout)))
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
