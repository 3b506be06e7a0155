"""What is kept of schedules (S54, S57)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.model.job import NewJob
from fairlane.model.schedule.records import ScheduleOverride, ScheduleRecord
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Every

JOB = NewJob(id=UUID(int=0), tenant="acme", queue="bulk", task="report", payload=b"{}", checksum=0)


def spec(**values: Any) -> ScheduleSpec:
    """Return a schedule of every second."""
    given: dict[str, Any] = {"name": "nightly", "job": JOB, "timing": Every(interval=1_000_000)}
    return ScheduleSpec(**given | values)


def test_an_override_is_in_force_until_it_ends() -> None:
    """S54: it lies above what is declared."""
    above = ScheduleOverride(spec=spec(note="ours"), who="ann", set_at=0, until=9)
    record = ScheduleRecord(name="nightly", declared=spec(), override=above)
    assert [record.spec(now) for now in (8, 9)] == [above.spec, spec()]
    assert ScheduleRecord(name="nightly").spec(0) is None


def test_a_schedule_is_of_the_tenant_of_its_jobs_unless_they_are_for_many() -> None:
    """S9: what is for many tenants is nobody's."""
    assert (spec().task, spec().tenant) == ("report", "acme")
    assert ScheduleRecord(name="nightly", declared=spec()).tenant == "acme"
    above = ScheduleOverride(spec=spec(for_tenants={}), who="ann", set_at=0)
    assert ScheduleRecord(name="nightly", declared=spec(), override=above).tenant is None
    assert ScheduleRecord(name="nightly").tenant is None
