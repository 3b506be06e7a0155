"""The job of a slot: the same whoever makes it, and told from every other."""

from __future__ import annotations

from uuid import UUID

from msgspec.structs import replace

from fairlane.model.identifiers import slot_id
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import NewJob
from fairlane.model.schedule.slot_jobs import job_of_slot, offset_of
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Every

AT = 1_772_366_400 * SECOND
JOB = NewJob(
    id=UUID(int=0), tenant="acme", queue="q", task="t", payload=b"x", checksum=7, dedup_until="started"
)
SPEC = ScheduleSpec(name="nightly", job=JOB, timing=Every(interval=HOUR))


def test_the_job_of_a_slot_is_always_the_same() -> None:
    """Its id is that of the slot, it says who made it, and the rest is as the schedule has it."""
    job = job_of_slot(SPEC, AT)
    assert job == job_of_slot(SPEC, AT)
    assert (job.id, job.created_by) == (slot_id("acme", "nightly", AT), "schedule:nightly")
    assert replace(job, id=JOB.id, created_by=None) == JOB
    assert job_of_slot(SPEC, AT + HOUR).id != job.id


def test_each_tenant_has_its_own_job() -> None:
    """Of the same slot."""
    job = job_of_slot(SPEC, AT, "globex")
    assert (job.tenant, job.id) == ("globex", slot_id("globex", "nightly", AT))


def test_a_schedule_that_minds_its_earlier_job_has_a_key() -> None:
    """Until that is settled, or only until it starts; a slot by hand has none."""
    skipping, queueing = (job_of_slot(replace(SPEC, overlap=one), AT) for one in ("skip", "queue_one"))
    assert (skipping.dedup_key, skipping.dedup_until) == ("schedule:nightly", "settled")
    assert (queueing.dedup_key, queueing.dedup_until) == ("schedule:nightly", "started")
    assert job_of_slot(replace(SPEC, overlap="skip"), AT, by_hand=True).dedup_key is None


def test_tenants_are_spread_over_the_time_that_was_asked_for() -> None:
    """Always the same one at the same place; not all at once."""
    spread = replace(SPEC, spread=HOUR)
    delays = {f"t{number}": job_of_slot(spread, AT, f"t{number}").delay for number in range(200)}
    assert delays == {name: offset_of(name, "nightly", HOUR) for name in delays}
    assert all(0 <= delay < HOUR for delay in delays.values())
    quarters = {delay * 4 // HOUR for delay in delays.values()}
    assert quarters == {0, 1, 2, 3}
    assert job_of_slot(spread, AT, by_hand=True).delay == 0
