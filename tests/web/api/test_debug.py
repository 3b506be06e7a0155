"""The debug views: whether a job is consistent, and what the store keeps."""

from __future__ import annotations

import pytest

from fairlane.model.access import Role
from fairlane.model.lifecycle.states import State
from tests.stores import STORES
from tests.web.callers import ann, web_of
from tests.web.pages.scene import FOREIGN, MINE, WORKER, filled


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_the_store_lists_its_tables_or_keys(store: str) -> None:
    """With entries, bytes and expiry, largest first, and no more than asked for."""
    async with filled(store) as scene, web_of(scene.app, ann()) as web:
        found = (await web.get("/api/v1/store")).json()
        few = (await web.get("/api/v1/store", params={"limit": 2})).json()
    sizes = [one["size"] for one in found["parts"] if one["size"] is not None]
    assert len(sizes) > 3
    assert sizes == sorted(sizes, reverse=True)
    assert {one["kind"] for one in found["parts"]} <= {
        "table",
        "hash",
        "zset",
        "set",
        "stream",
        "string",
        "list",
    }
    assert found["settings"]
    assert len(few["parts"]) == 2
    assert not few["is_complete"]


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_a_job_is_checked(store: str) -> None:
    """A running job of a worker that is there is sound; one whose lease ended long ago is not."""
    async with filled(store) as scene, web_of(scene.app, ann()) as web:
        (running,) = (await scene.app.jobs.afind(tenant=MINE, state=[State.RUNNING])).items
        sound = (await web.get(f"/api/v1/jobs/{running.id}/inspect")).json()
        assert sound["is_sound"], sound
        assert {"record", "claim", "derived"} <= {one["check"] for one in sound["checks"]}
        scene.clock.advance(600)
        broken = (await web.get(f"/api/v1/jobs/{running.id}/inspect")).json()
        page = (await web.post(f"/jobs/{running.id}/inspect")).text
    assert not broken["is_sound"]
    assert any("take-back" in one for one in broken["suggested_actions"])
    assert "nobody has reclaimed it" in page
    assert "Consistency" in page


async def test_they_are_for_administrators_of_all_tenants() -> None:
    """They show what belongs to all: workers, tenants in the names of keys."""
    async with filled("sqlite") as scene:
        (foreign,) = (await scene.app.jobs.afind(tenant=FOREIGN, state=[State.RUNNING])).items
        (own,) = (await scene.app.jobs.afind(tenant=MINE, state=[State.RUNNING])).items
        for path in ("/store", f"/jobs/{foreign.id}/inspect", f"/jobs/{own.id}/inspect"):
            async with web_of(scene.app, ann(Role.MANAGER)) as web:
                assert (await web.get(f"/api/v1{path}")).status_code == 403
            async with web_of(scene.app, ann(Role.ADMIN, MINE)) as web:
                answer = await web.get(f"/api/v1{path}")
                assert answer.status_code == 404
                assert WORKER not in answer.text
