"""Answer with a file of JSON lines, which is complete before it is sent. Knows nothing of its content."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Iterator
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import Final, TextIO, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

R = TypeVar("R")

NDJSON: Final = "application/x-ndjson"

_AT_ONCE: Final = 2**16
_GZIP: Final = 16 + zlib.MAX_WBITS


async def download(
    request: Request, name: str, write: Callable[[TextIO], Awaitable[R]]
) -> tuple[StreamingResponse, R]:
    """Return the answer with what `write` writes, and what it returns; gzip if the client takes it.

    It may be larger than the memory, and an error must be answered as one: so it is complete before the
    answer begins.
    """
    file = TextIOWrapper(TemporaryFile(), encoding="utf-8")  # noqa: SIM115 (the response closes it)
    try:
        result = await write(file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Vary": "Accept-Encoding"}
    parts = _read(file)
    if takes_gzip(request.headers.get("accept-encoding", "")):
        headers["Content-Encoding"] = "gzip"
        parts = _packed(parts)
    return StreamingResponse(parts, media_type=NDJSON, headers=headers), result


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes gzip, by its Accept-Encoding.

    >>> takes_gzip("br, gzip"), takes_gzip("gzip;q=0"), takes_gzip("*"), takes_gzip("")
    (True, False, False, False)
    """
    for one in accepted.lower().split(","):
        coding, _, quality = one.partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "").removeprefix("q=").strip("0.") != "" or not quality
    return False


def _read(file: TextIOWrapper) -> Iterator[bytes]:
    with file:
        while text := file.read(_AT_ONCE):
            yield text.encode()


def _packed(parts: Iterator[bytes]) -> Iterator[bytes]:
    packing = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packing.compress(part)
    yield packing.flush()
