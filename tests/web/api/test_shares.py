"""Fair shares over HTTP: what is there, and for whom."""

from __future__ import annotations

from fairlane import Fairlane
from tests.app.world import World
from tests.web.api.callers import Callers


async def crowd(app: Fairlane, world: World) -> None:
    """Let globex hold the only two slots while acme waits."""
    for tenant in ("globex", "globex", "globex"):
        await app.aenqueue_by_name("mail.send", {"text": "x"}, tenant=tenant)
    await world.claim()
    await world.claim()
    await app.aenqueue_by_name("mail.send", {"text": "x"}, tenant="acme")


async def test_shares_say_who_slows_whom(callers: Callers, app: Fairlane, world: World) -> None:
    """In the words of the model, as numbers; the first job of who waits is named."""
    await crowd(app, world)
    shares = await callers.get("/shares")
    assert [(one["tenant"], one["running"], one["fair"]) for one in shares["items"]] == [
        ("globex", 2, 1.0),
        ("acme", 0, 1.0),
    ]
    assert [one["is_over"] for one in shares["items"]] == [True, False]
    (queue,) = shares["queues"]
    assert [one["tenant"] for one in queue["slowed"]] == ["acme"]
    explained = await callers.get(f"/jobs/{queue['slowed'][0]['first_id']}/explain")
    assert explained["reason"] == "no_worker"
    assert shares["counts"]["slowed"] == 1


async def test_one_tenants_share_is_the_same(callers: Callers, app: Fairlane, world: World) -> None:
    """With the queues in which it has jobs."""
    await crowd(app, world)
    alone = await callers.get("/shares/acme")
    assert alone["items"] == (await callers.get("/shares?only=slowed"))["items"]
    assert [one["queue"] for one in alone["queues"]] == ["default"]


async def test_shares_are_paged_and_filtered(callers: Callers, app: Fairlane, world: World) -> None:
    """The cursor is that of the page before, in the same order; labels must all be there."""
    await crowd(app, world)
    first = await callers.get("/shares?order=name&limit=1")
    assert [one["tenant"] for one in first["items"]] == ["acme"]
    rest = await callers.get(f"/shares?order=name&cursor={first['cursor']}")
    assert ([one["tenant"] for one in rest["items"]], rest["cursor"]) == (["globex"], None)
    refused = await callers.ask("GET", f"/shares?order=waits&cursor={first['cursor']}")
    assert refused.status_code == 422
    await app.tenants.adeclare("acme", labels={"plan": "pro"})
    assert [one["tenant"] for one in (await callers.get("/shares?label=plan=pro"))["items"]] == ["acme"]
    assert (await callers.get("/shares?name=lob&only=over"))["counts"]["all"] == 1


async def test_a_reason_is_redacted(callers: Callers, app: Fairlane, world: World) -> None:
    """As wherever a pause is shown."""
    await crowd(app, world)
    await app.tenants.apause("acme", reason="password=hunter2")
    await app.queues.apause("default", reason="token=hunter2")
    text = (await callers.ask("GET", "/shares")).text
    assert "[redacted]" in text
    assert "hunter2" not in text


async def test_for_a_caller_of_one_tenant_there_are_no_shares(
    callers: Callers, app: Fairlane, world: World
) -> None:
    """S9: not even its own, which is made of what others hold."""
    await crowd(app, world)
    for path in ("/shares", "/shares/acme", "/shares/globex"):
        assert (await callers.ask("GET", path, tenant="acme")).status_code == 404
