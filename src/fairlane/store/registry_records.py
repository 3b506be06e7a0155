"""Encode what workers publish of themselves as bytes, and decode it. Reads and writes no store."""

from __future__ import annotations

import msgspec

from fairlane.store.contract.registry import TaskRecord, WorkerRecord

pack_record = msgspec.msgpack.Encoder().encode
read_worker = msgspec.msgpack.Decoder(WorkerRecord).decode
read_task = msgspec.msgpack.Decoder(TaskRecord).decode
