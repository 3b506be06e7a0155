"""What is received goes to one place: a gap for each read made a worker's memory grow."""

from __future__ import annotations

import socket

import pytest

from fairlane.store.contract.request import Request
from fairlane.store.receive_buffer import BUFFER_SIZE
from tests.contract.world import ALL
from tests.oracle.clock import DrivenClock
from tests.stores import STORES


@pytest.mark.parametrize("name", ["postgres", "redis"])
async def test_a_store_receives_everything_in_one_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the connection that verbs use, as long as it is there."""
    asked: list[int] = []
    rooms: list[memoryview] = []

    def recv(self: socket.socket, size: int) -> bytes:
        asked.append(size)
        return socket.SocketType.recv(self, size)

    def recv_into(self: socket.socket, room: memoryview) -> int:
        rooms.append(room)
        return socket.SocketType.recv_into(self, room)

    async with STORES[name](DrivenClock()) as store:
        await store.registry.status(Request(scope=ALL))
        with monkeypatch.context() as patch:
            patch.setattr(socket.socket, "recv", recv)
            patch.setattr(socket.socket, "recv_into", recv_into)
            await store.registry.status(Request(scope=ALL))
            await store.registry.status(Request(scope=ALL))
    assert not asked
    assert len(rooms) > 1
    assert {id(room.obj) for room in rooms} == {id(rooms[0].obj)}
    assert len(rooms[0]) == BUFFER_SIZE
