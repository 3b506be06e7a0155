"""Answer the three probes of every process: `/livez`, `/readyz` and `/health` (S92)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from fairlane.diagnosis.health import Health, HealthPart, HealthWatch

OK: Final = 200
NOT_FOUND: Final = 404
FAILING: Final = 503

ProbeReply: TypeAlias = tuple[int, bytes]


class Probes:
    """The probes of one process; `why_not_ready` says why it takes no work, or the empty text."""

    def __init__(self, watch: HealthWatch, why_not_ready: Callable[[], str] = lambda: "") -> None:
        self._watch = watch
        self._why_not_ready = why_not_ready

    async def __call__(self, path: str, *, has_details: bool = False) -> ProbeReply:
        """Return the status and the JSON of a probe."""
        probe = _BY_PATH.get(path)
        return (NOT_FOUND, b"{}") if probe is None else await probe(self, has_details=has_details)

    async def live(self, *, has_details: bool) -> ProbeReply:
        """Answer that the process is there and its loop turns.

        The store is not asked: nobody should kill a process for an outage of the store.
        """
        del has_details  # there are none
        return OK, msgspec.json.encode({"status": "ok"})

    async def ready(self, *, has_details: bool) -> ProbeReply:
        """Answer whether the process can work: it is not leaving, and the store answers."""
        why = self._why_not_ready()
        store = HealthPart("failing", why) if why else await self._watch.store_answers()
        reply: dict[str, str] = {"status": store.state}
        if has_details or why:
            reply["detail"] = store.detail
        return _status(is_ok=store.state == "ok"), msgspec.json.encode(reply)

    async def health(self, *, has_details: bool) -> ProbeReply:
        """Answer how store, duties and workers are."""
        health = await self._watch.health()
        return _status(is_ok=health.is_ok), msgspec.json.encode(_reply(health, has_details=has_details))


def _reply(health: Health, *, has_details: bool) -> dict[str, object]:
    parts = {name: getattr(health, name) for name in health.__struct_fields__}
    reply: dict[str, object] = {"status": "ok" if health.is_ok else "failing"}
    reply |= {name: part.state for name, part in parts.items()}
    return reply | ({"details": {name: part.detail for name, part in parts.items()}} if has_details else {})


def _status(*, is_ok: bool) -> int:
    return OK if is_ok else FAILING


_BY_PATH: Final[dict[str, Callable[..., Awaitable[ProbeReply]]]] = {
    "/livez": Probes.live,
    "/readyz": Probes.ready,
    "/health": Probes.health,
}
