"""The page of what a Redis or Valkey server has lost, made from what was measured. Measures nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.servers.proof_page import ProofPage, table

_HEAD: Final = """# What a Redis or Valkey server loses

Made by `python -m tests.servers.redis_losses`; {server}, {seconds:g} seconds of load before each end: three
producers that enqueue one job after the other, two workers that claim and settle. A producer writes down
what was acknowledged, outside the store. *Lost*: acknowledged jobs that the server does not know
afterwards. *Forgotten*: acknowledged settlements of jobs that are unfinished again, and run once more.
*Fences*: claims of unfinished jobs from before, each tried again afterwards; *broken*: one that was
accepted, or that a newer claim does not outrank (S36).

"""
_COLUMNS: Final = (
    "| end | setting | enqueued | lost | settled | forgotten | fences | broken |",
    "|---|---|---|---|---|---|---|---|",
)
_FOOT: Final = """
**killed**: SIGKILL of the server's process. What a process has written is the system's, and stays whether
it was synced or not: with an append-only file nothing acknowledged is lost, whatever `appendfsync` says,
since the server writes before it answers. Without one everything is.

**power cut**: what the server had not synced is gone. That is simulated: `strace` writes down each write
and each sync of the append-only file; after SIGKILL the file is cut to what had been written when the last
finished sync began. A real disk may keep more; one that lies about syncs, less. `everysec` loses up to
about a second; `no` loses what the system had not written by itself, which takes up to half a minute on
Linux: here nothing had been.

**failover**: SIGKILL of the primary, and its replica is promoted. A write takes {link:.0f} ms to the
replica. Without `WAIT` what was on its way is lost; with `?replicas=1` an enqueue is acknowledged when the
replica has it. Settlements do not wait: a job whose settling is forgotten runs again, as after the loss of
a worker.
"""


class Loss(msgspec.Struct, frozen=True):
    """What became of the acknowledged jobs of one run."""

    ends: str
    setting: str
    enqueued: int
    lost: int
    settled: int
    forgotten: int
    fences: int
    fences_broken: int


class Losses(msgspec.Struct, frozen=True):
    """What was measured, of which server, with how much load."""

    server: str
    seconds: float
    link: float
    rows: list[Loss]


def _say(losses: Losses) -> str:
    head = _HEAD.format(server=losses.server, seconds=losses.seconds)
    rows = table(_COLUMNS, map(msgspec.structs.astuple, losses.rows))
    return head + rows + _FOOT.format(link=losses.link * 1_000)


PAGE: Final = ProofPage("redis-losses", Losses, _say)
