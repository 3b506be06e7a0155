"""Who may come in, and how: TLS, a user with few rights, passwords."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from ssl import SSLObject

import pytest
from redis import Redis

from fairlane.model.errors import StoreError, StoreUnavailable
from fairlane.model.instants import SECOND
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World, failed
from tests.oracle.clock import DrivenClock
from tests.servers.debian import find
from tests.servers.valkey import MEMORY, ValkeyServer, free_port

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-redis.md"


async def live(url: str) -> None:
    """Let jobs live their lives there, with every kind of command."""
    world = World(open_store(url), DrivenClock())  # by the server's own time
    try:
        await world.register("w1")
        await world.enqueue(idempotency_key="k", delay=SECOND)
        await world.send(*(world.new(f"t{number % 3}") for number in range(100)))
        first, *rest = await world.claim(100)
        await world.renew(*rest)
        await world.settle(first, failed())
        for claim in rest:
            await world.settle(claim)
        waiting = WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=SECOND)
        assert await world.store.registry.wait(waiting)
        await world.store.upkeep.inspect(InspectRequest(scope=ALL, parts=10))
        await world.prune(succeeded=0)
        assert len(await world.find_all()) == 2
        await world.check_invariants()
    finally:
        await world.store.upkeep.aclose()


# ── TLS ───────────────────────────────────────────────────────────────────────


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that signs itself; return it and its key."""
    program = find("openssl")
    made, key = folder / "cert.pem", folder / "key.pem"
    command = (
        f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout {key} -out {made}"
    )
    names = ("-subj", "/CN=fairlane", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(  # noqa: S603 (our own words)
        [program.path, *command.split(), *names], env=program.environment(), check=True, capture_output=True
    )
    return made, key


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Start a server that speaks TLS only; return its address and the certificate to trust."""
    try:
        made, key = certificate(tmp_path)
        files = ("--tls-cert-file", str(made), "--tls-key-file", str(key), "--tls-auth-clients", "no")
        port = free_port()
        # The wheel's server is built without TLS.
        server = ValkeyServer(*files, "--tls-port", str(port), folder=MEMORY, kind="redis7")
    except LookupError as error:
        pytest.skip(str(error))
    server.start()
    yield f"rediss://127.0.0.1:{port}", made
    server.remove()


async def test_jobs_live_behind_tls_whose_certificate_is_checked(encrypted: tuple[str, Path]) -> None:
    """`rediss://`: with the right authority all goes well, without it nothing is sent."""
    url, trusted = encrypted
    await live(f"{url}?ssl_ca_certs={trusted}")
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        await live(url)


async def test_what_tls_has_decrypted_is_received_in_one_place(
    encrypted: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what comes in the clear is; the first read is that of the handshake."""
    rooms: list[memoryview | None] = []
    real = SSLObject.read

    def read(self: SSLObject, size: int, room: memoryview | None = None) -> int | bytes:
        rooms.append(room)
        return real(self, size) if room is None else real(self, size, room)

    monkeypatch.setattr(SSLObject, "read", read)
    url, trusted = encrypted
    await live(f"{url}?ssl_ca_certs={trusted}")
    assert len(rooms) - rooms.count(None) > 20
    assert rooms.count(None) < 20


# ── users ─────────────────────────────────────────────────────────────────────


async def test_a_user_with_rights_to_its_prefix_alone_is_enough(server: ValkeyServer, client: Redis) -> None:
    """By a name and a password, with the rights that the page gives."""
    (advised,) = re.findall("^ACL SETUSER .*", PAGE.read_text("utf-8"), re.MULTILINE)
    client.execute_command(*advised.split())  # type: ignore[no-untyped-call]
    place = f"unix://shop:password@{server.socket}"
    await live(f"{place}?prefix=shop")
    with pytest.raises(StoreError, match="permission") as caught:
        await live(f"{place}?prefix=other")
    assert not caught.value.retry_safe
    assert client.keys("{other}:*") == []


async def test_a_wrong_password_is_said_and_not_repeated_in_the_text(
    server: ValkeyServer, client: Redis
) -> None:
    """The error names the place, never the secret."""
    client.config_set("requirepass", "right")
    with pytest.raises(StoreError, match="password") as caught:
        await live(f"unix://:hush@{server.socket}")
    assert "hush" not in str(caught.value)
    await live(f"unix://:right@{server.socket}")
    client.close()
