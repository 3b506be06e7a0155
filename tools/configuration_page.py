"""Write the table of all keys into docs/reference/configuration.md; the words around it are written by hand.

`make diagram` runs it; a test compares the page with the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlane.app.config.keys import TREE, all_keys

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "configuration.md"
BEGIN: Final = "<!-- The tables are written by `make diagram` from src/fairlane/app/config/keys.py. -->\n"
END: Final = "<!-- End of the tables. -->\n"


def tables() -> Iterator[str]:
    """Return the lines of one table for each table of the file, with every key in its order."""
    for table in TREE:
        keys = [(name, key) for name, key in all_keys() if name.split(".")[0] == table]
        yield from (f"### [{table}]", "")
        yield from ("| key | default | meaning | allowed |", "|---|---|---|---|")
        for name, key in keys:
            default = f"`{key.default}`" if key.default else ""
            yield f"| `{name}` | {default} | {key.about} | {_cell(key.kind.allowed)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def with_tables(page: str) -> str:
    """Put the tables between their marks; what stands around them stays."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return "\n".join([head + BEGIN, *tables(), END + tail]).replace(f"\n\n{END}", f"\n{END}")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
