"""A batch that was let in, and that nobody has brought to its end."""

from __future__ import annotations

from typing import Any

from fairlane.model.job import NewJob
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.large_batch import LargeBatch
from tests.contract.world import ALL


async def publish(store_client: RedisClient, jobs: tuple[NewJob, ...], **options: Any) -> None:
    """Do what a sender does that dies then."""
    batch = LargeBatch(store_client, EnqueueRequest(scope=ALL, jobs=jobs, **options))
    await store_client.pipeline_all(batch._stage, batch._on_reply)
    assert await store_client.run(*batch._publish, is_enqueue=True)
