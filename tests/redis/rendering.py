"""Name all scripts, and render them with other bounds: small histories reach what very many jobs do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.store.redis import script_loader

SCRIPTS = Path(script_loader.__file__).parent / "scripts"
VERBS = sorted(
    str(path.relative_to(SCRIPTS).with_suffix(""))
    for path in SCRIPTS.rglob("*.lua")
    if SCRIPTS / "lib" not in path.parents
)
"""The scripts, as "claims/settle"."""


@contextmanager
def rendered(**constants: int) -> Iterator[None]:
    """Set constants of the scripts to other values: `MAX_INLINE_STRANDS`, `PREFETCH`."""
    usual = {name: script_loader._CONSTANTS[name] for name in constants}
    _render(constants)
    try:
        yield
    finally:
        _render(usual)


def _render(constants: dict[str, int] | dict[str, int | str]) -> None:
    script_loader._CONSTANTS.update(constants)
    script_loader._values.cache_clear()
    script_loader.load.cache_clear()
