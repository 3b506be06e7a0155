"""Make one pass of a duty by hand, in the process that asks. Safe beside a leader, as two leaders are."""

from __future__ import annotations

import msgspec

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import text_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.fairlane import Fairlane
from fairlane.duties.duties import all_duties
from fairlane.duties.duty_watch import duty_name
from fairlane.duties.pass_result import Pause
from fairlane.model.instants import SECOND
from fairlane.model.journal.operations import entry_of
from fairlane.store.contract.journal import AppendRequest


class DutyPass(msgspec.Struct, frozen=True, kw_only=True):
    """A pass made by hand: what it did, empty for nothing, in how many seconds, and whether there is more."""

    name: str
    did: str
    took: float
    more: bool


async def run_duty(app: Fairlane, name: str, *, note: str = "", who: str | None = None) -> DutyPass:
    """Make one bounded pass of a duty; the audit says who did. LookupError if there is no such duty.

    What the pass raises is raised here; the leader's report of the duty stays as it is.
    """
    scope, client = scope_of_all("duties serve all tenants"), app.client
    duties = {duty_name(one): one for one in all_duties(client.clock, app.settings.worker, app.settings)}
    if name not in duties:
        message = f"there is no duty {name[:80]!r}{did_you_mean(name, list(duties))}"
        raise LookupError(message)
    done = operation("duties.run", who=who, note=text_of("note", note))
    if done is not None:
        entry = entry_of(done, f"duty {name}", None)
        await client.store.journal.append(AppendRequest(scope=scope, journal="audit", entries=(entry,)))
    began = client.clock.elapsed()
    pause = await duties[name](client.store)
    took = (client.clock.elapsed() - began) / SECOND
    return DutyPass(
        name=name, did=pause.did if isinstance(pause, Pause) else "", took=took, more=pause < SECOND
    )
