"""Claim jobs: a script claims at most `MAX_JOBS_PER_SCRIPT` and hands a continuation to the next one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.errors import StoreError
from fairlane.model.instants import Instant
from fairlane.model.job import Claim
from fairlane.store.contract.breakers import OpenBreakers
from fairlane.store.contract.claims import ClaimReply, ClaimRequest
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.breaker import read_open
from fairlane.store.redis.records.job import pack, read_claims


async def claim(client: RedisClient, request: ClaimRequest) -> ClaimReply:
    """Claim with as many scripts as it takes."""
    check_serves_all(request)
    parts = ClaimParts(request)
    parts.add(0, await client.run("claims/claim", encode_request(request), ""))
    return await finish_claim(client, parts)


class ClaimParts:
    """What the scripts of one claim have returned. The last of them says how to go on."""

    def __init__(self, request: ClaimRequest) -> None:
        """Start empty."""
        self.request = request
        self.continuation = b""
        self._due: Instant = 0
        self._is_partial = 0
        self._is_ahead_cut = 0
        self._undecoded: list[tuple[Instant, list[bytes], list[bytes]]] = []
        self._claims: list[Claim] = []
        self._permits: list[UUID] = []
        self._open_breakers: OpenBreakers | None = None
        self.last = -1

    def add(self, number: int, reply: list[Any]) -> None:
        """Add the reply of a script; decode it later."""
        continuation, due, is_partial, is_ahead_cut, now, parts, over_budget, permits, named = reply
        self._permits += [UUID(bytes=id) for id in permits]
        if number > self.last:
            self.last, self.continuation, self._due = number, continuation, due
            self._is_partial, self._is_ahead_cut = is_partial, is_ahead_cut
            self._open_breakers = read_open(named, now)
        self._undecoded.append((now, parts, over_budget))

    def decode(self) -> None:
        """Decode what was added since."""
        undecoded, self._undecoded = self._undecoded, []
        for now, parts, over_budget in undecoded:
            claims = read_claims(self.request.worker, now, self.request.lease, parts)
            self._claims += _marked(claims, over_budget) if over_budget else claims

    def cut_short(self) -> None:
        """Stop here after an error: the caller gets what was claimed, and may ask for more."""
        self.continuation, self._is_partial, self._is_ahead_cut = b"", 1, 0

    def reply(self) -> ClaimReply:
        """Return all claims."""
        is_partial, is_ahead_cut = bool(self._is_partial), bool(self._is_ahead_cut)
        return ClaimReply(
            tuple(self._claims),
            self._due or None,
            is_partial,
            is_ahead_cut,
            tuple(self._permits),
            self._open_breakers if self._claims else None,
        )


def _marked(claims: list[Claim], over_budget: list[bytes]) -> list[Claim]:
    """Mark the claims of these jobs: their budget is spent (S59)."""
    over = set(over_budget)
    return [
        msgspec.structs.replace(one, is_over_budget=True) if one.job.id.bytes in over else one
        for one in claims
    ]


async def finish_claim(client: RedisClient, parts: ClaimParts) -> ClaimReply:
    """Run the remaining scripts of a claim; decode each part while the server works on the next."""
    while parts.continuation:
        arguments = (encode_request(parts.request), parts.continuation)
        try:
            reply = await client.run("claims/claim", *arguments, while_waiting=parts.decode)
        except StoreError:
            parts.cut_short()  # an error would leave what was claimed to its lease
        else:
            parts.add(parts.last + 1, reply)
    parts.decode()
    return parts.reply()


def encode_request(request: ClaimRequest) -> bytes:
    """Pack a request as scripts read it."""
    return pack(
        {
            "worker": request.worker,
            "lease": request.lease,
            "queue_requests": [(one.queue, one.limit) for one in request.queue_requests],
            "total": request.total,
            "headroom": request.headroom,
            "ahead": request.ahead,
            "names_breakers": request.names_breakers,
        }
    )
