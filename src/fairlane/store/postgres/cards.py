"""Keep what workers publish of themselves as bytes, and read it back."""

from __future__ import annotations

import msgspec

from fairlane.store.contract.registry import TaskCard, WorkerCard

pack = msgspec.msgpack.Encoder().encode
read_card = msgspec.msgpack.Decoder(WorkerCard).decode
read_task = msgspec.msgpack.Decoder(TaskCard).decode
