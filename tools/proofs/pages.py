"""Everything made from the stored measurements: the pages, their index, the figures of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.proofs.headline import replaced
from tools.proofs.index import index
from tools.proofs.measurement import PROOFS, ROOT, read
from tools.proofs.suite import PAGES

README: Final = ROOT / "README.md"


def render() -> dict[Path, str]:
    """Return the text of every file made from the stored measurements."""
    found = {page: one for page in PAGES if (one := read(page.name)) is not None}
    measurement = {page.name: one for page, one in found.items()}
    figures = {page.name: page.figures(one) for page, one in found.items()}
    return {
        **{PROOFS / f"{page.name}.md": page.render(one) for page, one in found.items()},
        PROOFS / "README.md": index(measurement, figures),
        README: replaced(README.read_text(encoding="utf-8"), measurement, figures),
    }


def write_pages() -> None:
    """Write all of them."""
    for file, text in render().items():
        file.write_text(text, encoding="utf-8")
