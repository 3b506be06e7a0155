"""A batch that was let in, and that nobody has brought to its end."""

from __future__ import annotations

from fairlane.model.job import NewJob
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.enqueue import Batch
from tests.contract.world import ALL


async def publish(wire: Wire, jobs: tuple[NewJob, ...]) -> None:
    """Do what a sender does that dies then."""
    batch = Batch(wire, EnqueueRequest(scope=ALL, jobs=jobs))
    await wire.pour(batch._staged, batch._hear)
    assert await wire.run(*batch._publish, enqueues=True)
