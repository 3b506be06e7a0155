"""Everything that is made of the kept measurements: the pages, their index, the figures of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.proofs.headline import replaced
from tools.proofs.index import index
from tools.proofs.kept import PROOFS, ROOT, read
from tools.proofs.suite import PAGES

README: Final = ROOT / "README.md"


def render() -> dict[Path, str]:
    """Give the text of every file that is made of what is kept."""
    found = {page: one for page in PAGES if (one := read(page.name)) is not None}
    kept = {page.name: one for page, one in found.items()}
    figures = {page.name: page.figures(one) for page, one in found.items()}
    return {
        **{PROOFS / f"{page.name}.md": page.render(one) for page, one in found.items()},
        PROOFS / "README.md": index(kept, figures),
        README: replaced(README.read_text(encoding="utf-8"), kept, figures),
    }


def write_pages() -> None:
    """Write all of them."""
    for file, text in render().items():
        file.write_text(text, encoding="utf-8")
