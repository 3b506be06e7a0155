"""Encode what workers publish of themselves as bytes, and decode it. Reads and writes no store."""

from __future__ import annotations

import msgspec

from fairlane.model.duty_report import DutyReports
from fairlane.store.contract.registry import TaskRecord, WorkerRecord

pack_record = msgspec.msgpack.Encoder().encode
read_worker = msgspec.msgpack.Decoder(WorkerRecord).decode
pack_reports = msgspec.json.Encoder().encode
_read_reports = msgspec.json.Decoder(DutyReports).decode
read_task = msgspec.msgpack.Decoder(TaskRecord).decode


def reports_key(lead: str) -> str:
    """Return under which name the reports of a lead are stored among the single values."""
    return f"reports {lead}"


def read_reports(stored: bytes | str | None) -> DutyReports:
    """Return the reports of a lead; none if nobody has reported."""
    return DutyReports() if stored is None else _read_reports(stored)
