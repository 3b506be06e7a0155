"""`/duties`: what the store needs done, who does it and how it went. They serve all tenants (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fairlane.app.admin.duties import DutyView
from fairlane.duties.by_hand import DutyPass, run_duty
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup

DUTIES: Final = EndpointGroup("duties", "Duties: who does them, how each went last, and a pass by hand.")


class DutyList(msgspec.Struct, frozen=True):
    """The process that does the duties, none if it is null, and every duty by name."""

    leader: str | None
    items: Sequence[DutyView]


@DUTIES.get("/duties", "duties.find", tenants="all")
async def find(call: WebCall) -> DutyList:
    """Return who does the duties, and each of them with its last pass: when, what it did, its lag, its error.

    The leader reports every few seconds.
    """
    return DutyList(await call.app.duties.aleader(), await call.app.duties.alist())


@DUTIES.post("/duties/{duty}/run", "duties.run", least=Role.OPERATOR, tenants="all")
async def run(call: WebCall, duty: str, body: Change) -> DutyPass:
    """Make one bounded pass of a duty in this server. Safe beside the process that does the duties."""
    return await run_duty(call.app, duty, note=body.note)
