"""The page of what was compared of every zone's slots. Compares nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.servers.proof_page import ProofPage, table

_HEAD: Final = """# Schedules when clocks are changed

Made by `python -m tests.model.schedule.every_zone --keep`, with zone data {zone_data}.

What schedules do around every change of every zone's clock, compared with a reference that looks at each
minute, asks the zone what a clock shows then, and shares no code with ours, nor cronsim. From {first} to
{last}, each minute of the day before and after each change was looked at, and of one ordinary day of each
year, for {rules} rules: each of the expressions below, with missing times that run at the first valid
instant, later, or not at all, and repeated ones that run the first time, the second, or both. Zones whose
clocks do the same in these years are compared once.

"""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """How much was compared, and how many rules differed somewhere."""

    zone_data: str
    first: str
    last: str
    zones: int
    clocks: int
    changing: int
    changes: int
    rules: int
    slots: int
    differences: int
    expressions: list[str]


def page(compared: Compared) -> str:
    """Say it in words and a table."""
    rows = (
        ("zones", f"{compared.zones:,}"),
        ("clocks that they have", f"{compared.clocks:,}"),
        ("clocks that are changed", f"{compared.changing:,}"),
        ("changes", f"{compared.changes:,}"),
        ("slots compared", f"{compared.slots:,}"),
        ("**differences**", f"**{compared.differences:,}**"),
    )
    expressions = "".join(f"- `{expression}`\n" for expression in compared.expressions)
    head = _HEAD.format(**msgspec.structs.asdict(compared))
    return head + table(("| what | how many |", "|---|---:|"), rows) + f"\nThe expressions:\n\n{expressions}"


PAGE: Final = ProofPage("dst", Compared, page)
