"""List the files of the package that run between the enqueue of a job and its settlement, on each store.

It runs a few jobs in a warm worker and records whose functions are called during the last one. `make life`
writes the lists into docs/explanation/life-of-a-job.md; a test checks that every listed file exists. The
order of the list is that of the walk: application, decisions, contract, store, worker.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

import fairlane
from fairlane import Fairlane
from fairlane.worker.worker import WorkerRuntime
from tools.pages import ROOT
from tools.proofs.stores import STORES, Store, measured

PAGE: Final = ROOT / "docs" / "explanation" / "life-of-a-job.md"
BEGIN: Final = "<!-- `make life` records real jobs and writes what stands up to the next mark -->\n"
END: Final = "<!-- end of the files -->\n"

_LAYERS: Final = ("app", "model", "store", "runtime", "worker")
_SOURCE: Final = Path(fairlane.__file__).parent
_PAUSE: Final = 0.3


class _Tracer:
    """Records the files whose functions are called while it is on, in all threads that start later."""

    def __init__(self) -> None:
        self.is_on = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> None:
        path = frame.f_code.co_filename
        if self.is_on and frame.f_code.co_name != "<module>" and path.startswith(str(_SOURCE)):
            self.files.add(Path(path).relative_to(_SOURCE).as_posix())


async def _run(url: str, tracer: _Tracer) -> None:
    app = Fairlane(url)

    @app.task(name="mail.send")
    async def send(to: str) -> str:
        return f"sent to {to}"

    async def one() -> None:
        await (await send.using(tenant="acme").aenqueue("ann@example.org")).aresult()

    async with app:
        worker = WorkerRuntime(app, duties=False)
        running = asyncio.ensure_future(worker.run())
        for _ in range(3):
            await one()
        tracer.is_on = True
        await send.using(tenant="acme").aenqueue("ann@example.org")
        await asyncio.sleep(2 * _PAUSE)
        tracer.is_on = False
        worker.stop()
        await running


def files_of(url: str) -> list[str]:
    """Return the files that one job passes through on the store behind this URL, layer by layer."""
    tracer = _Tracer()
    threading.settrace(tracer)
    sys.settrace(tracer)
    try:
        asyncio.run(_run(url, tracer))
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return sorted(tracer.files, key=lambda file: (_LAYERS.index(file.partition("/")[0]), file))


def lines(found: Mapping[Store, list[str]]) -> Iterator[str]:
    """Return one table: a row per layer, a column per store."""
    yield "| | " + " | ".join(f"{STORES[store]}: {len(files)} files" for store, files in found.items()) + " |"
    yield "|---|" + "---|" * len(found)
    for layer in _LAYERS:
        cells = (
            "<br>".join(f"`{file}`" for file in files if file.partition("/")[0] == layer)
            for files in found.values()
        )
        yield f"| `{layer}` | {' | '.join(cells)} |"


def with_files(page: str, found: Mapping[Store, list[str]]) -> str:
    """Put the lists between their marks; what stands around them stays."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        message = f"{PAGE.name} has no place for the files: {BEGIN}… {END}"
        raise ValueError(message)
    return head + "\n".join([BEGIN, *lines(found), "", END]) + tail


def main() -> None:
    """Trace a job on each store, on private servers as the tests have them, and write the page."""
    logging.disable(logging.CRITICAL)
    found: dict[Store, list[str]] = {}
    with TemporaryDirectory() as folder:
        for store in STORES:
            with measured(store) as new_url:
                url = new_url("life") or f"sqlite:///{folder}/life.db"
                found[store] = files_of(url)
    PAGE.write_text(with_files(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print({store: len(files) for store, files in found.items()})


if __name__ == "__main__":
    main()
