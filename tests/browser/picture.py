"""Take a picture of a page that is small enough to be kept: a PNG of at most 256 colours."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

_PALETTE: Final = Path(__file__).with_name("palette.js").read_text("utf-8")
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


async def picture(page: Page, workshop: Page) -> bytes:
    """Return what the window shows of a page. `workshop` is an empty page, which may run anything."""
    shot = await page.screenshot(animations="disabled", caret="hide")
    drawn: dict[str, Any] = await workshop.evaluate(_PALETTE, b64encode(shot).decode())
    return indexed_png(drawn["width"], drawn["height"], drawn["palette"], b64decode(drawn["pixels"]))


def indexed_png(width: int, height: int, palette: Sequence[int], pixels: bytes) -> bytes:
    r"""Return a PNG of pixels that are places in a palette.

    >>> indexed_png(1, 1, [0xFF0000], bytes(1))[:16]
    b'\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR'
    """
    rows = b"".join(b"\0" + pixels[start : start + width] for start in range(0, width * height, width))
    return (
        _SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + _chunk(b"PLTE", b"".join(colour.to_bytes(3, "big") for colour in palette))
        + _chunk(b"IDAT", zlib.compress(rows, 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
