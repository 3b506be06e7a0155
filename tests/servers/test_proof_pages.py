"""What is published of the servers, and of the zones, is what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.schedule import dst_page
from tests.postgres import backlog_page
from tests.servers import bounds_page, losses_page
from tests.servers.proof_page import ProofPage

PAGES: dict[str, ProofPage[Any]] = {
    "tests.servers.redis_losses": losses_page.PAGE,
    "tests.servers.redis_bounds": bounds_page.PAGE,
    "tests.postgres.backlog": backlog_page.PAGE,
    "tests.model.schedule.every_zone": dst_page.PAGE,
}


@pytest.mark.parametrize("module", PAGES)
def test_the_page_is_what_was_measured(module: str) -> None:
    """`python -m … --render` writes it anew."""
    page = PAGES[module]
    assert page.path.read_text("utf-8") == page.render()
    assert f"python -m {module}" in page.render()
