"""The page with the keys, the personal settings, and the way to all pages, which phones need."""

from __future__ import annotations

from typing import Final

from fairlane.web.call import WebCall
from fairlane.web.page import PageGroup, PageView
from fairlane.web.personal import CHOICES, zones

HELP: Final = PageGroup("Help", section="watch", icon="info", key="h")


@HELP.page("/help", "help")
async def show_help(_: WebCall) -> PageView:
    """Show what can be typed, and what this browser has chosen."""
    return PageView("help/help.html", {"choices": CHOICES, "zones": zones()})
