"""A read of a few bytes makes no room for 256 KiB: such gaps made a worker's memory grow."""

from __future__ import annotations

import socket

import pytest

from fairlane.store.contract.request import Request
from fairlane.store.receiving import PIECE, receive_in_pieces
from tests.contract.world import ALL
from tests.oracle.clock import DrivenClock
from tests.stores import STORES


@pytest.mark.parametrize("name", ["postgres", "redis"])
async def test_a_store_asks_for_a_piece_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every connection that verbs use."""
    asked: list[int] = []

    def recv(self: socket.socket, size: int) -> bytes:
        asked.append(size)
        return socket.SocketType.recv(self, size)

    async with STORES[name](DrivenClock()) as store:
        await store.registry.pulse(Request(scope=ALL))
        monkeypatch.setattr(socket.socket, "recv", recv)
        await store.registry.pulse(Request(scope=ALL))
    assert asked
    assert max(asked) == PIECE


def test_a_transport_of_another_kind_stays_as_it_is() -> None:
    """That of another loop, which has a buffer of its own, may not take to it."""
    transport = object()
    receive_in_pieces(transport)
    assert not hasattr(transport, "max_size")
