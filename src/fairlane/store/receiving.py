"""How much a connection asks the system for at a time. Knows neither server nor driver."""

from __future__ import annotations

from typing import Any, Final

PIECE: Final = 32 * 1024
"""Bytes. Whoever waits for more than a piece reads several."""


def receive_in_pieces(transport: Any) -> None:
    """Let a transport of asyncio receive no more than a piece at a time; any other stays as it is.

    For each read asyncio makes room for 256 KiB and gives back what was not needed, mostly all but a few
    hundred bytes. What comes to live in such a gap keeps the next read out of it, so that a worker's memory
    grew by a third in half a million jobs although it held no more (decision 0052).
    """
    reader = getattr(transport, "_ssl_protocol", transport)  # which reads again what TLS has decrypted
    if hasattr(reader, "max_size"):
        reader.max_size = PIECE
