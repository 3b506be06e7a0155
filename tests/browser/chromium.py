"""Find and start Chromium. Without one these tests are left out, and say why; in CI they must run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, async_playwright

FINDER: Final = Path(__file__).parents[2] / "tools" / "find_chromium"

# What a browser does beside showing pages would reach for the network, or needs a machine of its own.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@cache
def chromium_path() -> str:
    """Return the path of Chromium; skip the test where there is none, unless the tests may not be skipped."""
    command = ["/bin/sh", str(FINDER)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (its own)
    if found.returncode == 0:
        return found.stdout.strip()
    if os.environ.get("FAIRLANE_TEST_BROWSER") == "required":
        pytest.fail(found.stderr.strip())
    pytest.skip(found.stderr.strip())


@asynccontextmanager
async def opened_browser() -> AsyncIterator[Browser]:
    """Start Chromium, and end it."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()
