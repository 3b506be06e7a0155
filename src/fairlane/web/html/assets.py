"""Serve the stylesheet, the scripts and the icons. Browsers keep them: their URLs change with them.

What comes from elsewhere is listed in `static/vendored.json`: package, version, licence and hash.
"""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlane.web.problem import NOT_FOUND, HttpProblem

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_FOR_A_MINUTE: Final = "public, max-age=60"
_HASH: Final = 12


class Asset(msgspec.Struct, frozen=True):
    """One file that browsers load: as it is, and compressed."""

    name: str
    content: bytes
    compressed: bytes
    media_type: str
    hash: str


@cache
def assets() -> dict[str, Asset]:
    """Return all assets by name, read once."""
    found: dict[str, Asset] = {}
    for file in files("fairlane.web").joinpath("static").iterdir():
        media_type = _TYPES.get(file.name[file.name.rfind(".") :])
        if media_type is not None:
            content = file.read_bytes()
            digest = sha256(content).hexdigest()[:_HASH]
            compressed = gzip.compress(content, mtime=0)
            found[file.name] = Asset(file.name, content, compressed, media_type, digest)
    return found


def asset_url(root: str, name: str) -> str:
    """Return the URL of an asset below a prefix; KeyError if there is none of this name."""
    return f"{root}/static/{name}?v={assets()[name].hash}"


async def serve_asset(request: Request) -> Response:
    """Answer with an asset, compressed if the browser takes that. Nobody needs to be signed in for it."""
    asset = assets().get(request.path_params["name"])
    if asset is None:
        raise HttpProblem(404, "not_found", NOT_FOUND)
    is_current = request.query_params.get("v") == asset.hash
    headers = {
        "cache-control": _FOR_EVER if is_current else _FOR_A_MINUTE,
        "etag": f'"{asset.hash}"',
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(asset.compressed, headers=headers, media_type=asset.media_type)
    return Response(asset.content, headers=headers, media_type=asset.media_type)
