"""`fairlane tenants shares`: what an operator reads when one tenant waits for another."""

from __future__ import annotations

from tests.cli.shell import Shell
from tests.contract.world import World


async def crowd(world: World) -> None:
    """Let globex hold four slots while acme and umbrella wait."""
    await world.enqueue_many(9, "globex", queue="bulk")
    await world.claim(4, "bulk")
    world.advance(60)
    await world.enqueue_many(2, "acme", queue="bulk")
    world.advance(30)
    await world.enqueue("umbrella", queue="bulk")
    await world.enqueue("idle", queue="mail", delay=60_000_000)


def test_who_slows_whom_is_said_below_the_table(store: Shell) -> None:
    """The whole answer."""
    store.in_store(crowd)
    assert store.output_of("tenants", "shares") == (
        "TENANT    WEIGHT  RUNNING  FAIR  READY  DELAYED  DEAD  WAITS SINCE  STANDING\n"
        "globex    1             4  1.5       5        0     0  1m 30s ago   slows others\n"
        "acme      1             0  1.5       2        0     0  30s ago      slowed\n"
        "umbrella  1             0  1         1        0     0  now          slowed\n"
        "idle      1             0  0         0        1     0  -            -\n"
        "Queue bulk: globex holds 4 slots, of which 1.5 are its share. It slows acme (waits since 30s ago), "
        "umbrella (waits since now).\n"
    )


def test_programs_get_one_object_for_each_tenant(store: Shell) -> None:
    """With its queues; remarks are for people."""
    store.in_store(crowd)
    found = store.run("tenants", "shares", "--only", "slowed", "--order", "name", "--json").objects
    assert [(one["tenant"], one["fair"], one["is_slowed"]) for one in found] == [
        ("acme", 1.5, True),
        ("umbrella", 1.0, True),
    ]
    assert [one["queue"] for one in found[0]["queues"]] == ["bulk"]
    assert found[0]["queues"][0]["first_id"]


def test_pages_filters_and_their_errors(store: Shell) -> None:
    """The cursor is printed; what does not exist is said."""
    store.in_store(crowd)
    first = store.run("tenants", "shares", "--order", "name", "--limit", "2", "--json")
    cursor = first.err.split()[-1]
    rest = store.run("tenants", "shares", "--order", "name", "--cursor", cursor, "--json").objects
    assert [one["tenant"] for one in [*first.objects, *rest]] == ["acme", "globex", "idle", "umbrella"]
    assert store.output_of("tenants", "shares", "--name", "zzz").splitlines()[0] == "No such tenant."
    assert store.run("tenants", "shares", "--cursor", cursor).code == 2
    assert store.run("tenants", "shares", "--only", "mine").code == 2
    assert store.output_of("tenants", "shares", "--label", "plan=pro").splitlines()[0] == "No such tenant."
