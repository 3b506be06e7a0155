"""Who may come in: TLS with a certificate that is checked, passwords from every source of libpq, none shown.

The servers of the wheel are built without TLS, so this one is Debian's.
"""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fairlane.model.errors import ConfigError, StoreError, StoreUnavailable
from fairlane.store.contract.request import Request
from fairlane.store.opening import open_store
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL
from tests.servers.debian import find
from tests.servers.postgres import HASTY, MEMORY, PostgresServer, binaries, other_user

DEBIAN = "15"
SECRET = "s3cret-w0rd"
_RULES = """
local   all all              trust
hostssl all all 127.0.0.1/32 scram-sha-256
"""


def certificate(folder: Path, address: str) -> Path:
    """Make a certificate for an address that signs itself, with its key in the same folder; return it."""
    program, made = find("openssl"), folder / f"{address}.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=fairlane"
    files = ("-keyout", str(made.with_suffix(".key")), "-out", str(made))
    subprocess.run(  # noqa: S603 (our own words)
        [program.path, *words.split(), *files, "-addext", f"subjectAltName=IP:{address}"],
        env=program.environment(),
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture(autouse=True)
def _let_go() -> Iterator[None]:
    """The driver leaves the transport of a refused handshake to the collector, which warns in any test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, Path]]:
    """A server that takes only TLS and only with a password, and the certificate to trust."""
    try:
        binaries(DEBIAN)
        made = certificate(tmp_path_factory.mktemp("tls"), "127.0.0.1")
    except LookupError as error:
        pytest.skip(str(error))
    server = PostgresServer(
        *HASTY, "ssl=on", "ssl_cert_file=own.pem", "ssl_key_file=own.key", folder=MEMORY, version=DEBIAN
    )
    for source in (made, made.with_suffix(".key")):
        target = server.data / f"own{source.suffix}"
        shutil.copy(source, target)
        target.chmod(0o600)
        if other_user():
            shutil.chown(target, other_user()["user"], other_user()["group"])
    (server.data / "pg_hba.conf").write_text(_RULES)
    server.start()
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"ALTER ROLE fairlane PASSWORD '{SECRET}'".encode())
    yield server, made
    server.close()


@pytest.fixture
def url(guarded: tuple[PostgresServer, Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of that server without a password, nor is there one elsewhere, with the certificate checked."""
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    server, trusted = guarded
    return f"{server.tcp_url}?sslmode=verify-full&sslrootcert={trusted}"


async def is_encrypted(url: str) -> bool:
    """Make the schema, ask the store for something, and say whether the server saw TLS."""
    store = PostgresStore(url)
    try:
        await store.upkeep.migrate()
        assert (await store.registry.status(Request(scope=ALL))).now > 0
        return bool(await store._server.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
    finally:
        await store.upkeep.aclose()


async def refusal(url: str) -> StoreError:
    """Return the error of a store that cannot come in."""
    store = PostgresStore(url)
    with pytest.raises(StoreError) as caught:
        await store.registry.status(Request(scope=ALL))
    await store.upkeep.aclose()
    return caught.value


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_jobs_travel_encrypted(url: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of the certificate is looked at; the password comes from the environment."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert await is_encrypted(url.replace("verify-full", mode))


async def test_a_password_file_is_read(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As libpq does: `~/.pgpass`, or where PGPASSFILE says."""
    monkeypatch.delenv("PGPASSFILE")
    monkeypatch.setenv("HOME", str(tmp_path))
    kept = tmp_path / ".pgpass"
    kept.write_text(f"127.0.0.1:*:*:fairlane:{SECRET}\n")
    kept.chmod(0o600)
    assert await is_encrypted(url)


async def test_a_certificate_that_nobody_vouches_for_is_refused(url: str, tmp_path: Path) -> None:
    """Nothing is sent to a server that shows another certificate, or one for another address."""
    other = certificate(tmp_path, "127.0.0.2")
    error = await refusal(f"{url.partition('?')[0]}?sslmode=verify-full&sslrootcert={other}")
    assert isinstance(error, StoreUnavailable)
    assert "certificate verify failed" in str(error)
    error = await refusal(url.replace("127.0.0.1", "localhost", 1))
    assert isinstance(error, StoreUnavailable)
    assert "certificate verify failed" in str(error)


async def test_a_server_that_demands_tls_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that will not speak it hears the server's own words, and is not told to repeat."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    error = await refusal(url.partition("?")[0] + "?sslmode=disable")
    assert "no encryption" in str(error)
    assert not error.retry_safe


@pytest.mark.parametrize("place", ["url", "environment"])
async def test_a_wrong_password_is_one_clear_error_without_it(
    url: str, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the error nor what caused it nor the log shows what was tried; a repeat is of no use."""
    caplog.set_level(logging.DEBUG)
    wrong = "wr0ng-w0rd"
    if place == "url":
        url = url.replace("fairlane@", f"fairlane:{wrong}@")
    else:
        monkeypatch.setenv("PGPASSWORD", wrong)
    error = await refusal(url)
    assert isinstance(error, StoreUnavailable)
    assert str(error).endswith('refuses the connection: password authentication failed for user "fairlane"')
    assert not error.retry_safe
    assert wrong not in "".join(traceback.format_exception(error)) + caplog.text


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("me:{}@h:port/d", ConfigError),
        ("me:{}/x@h/d", ConfigError),
        ("me:1{}@[h/d", ConfigError),
        ("me:1234/{}@h/d", ConfigError),
        ("me:{}@h/d?sslmode=verify-full&sslrootcert=/nowhere", ConfigError),
        ("me:{}@h/d?sslmode=often", StoreError),
        ("me:{}@h/d?target_session_attrs=lazy", StoreError),
        ("h/d?password={}&sslmode=often", StoreError),
        ("me:{}@127.0.0.1:1/d", StoreUnavailable),
    ],
)
async def test_a_url_that_is_wrong_does_not_show_its_password(wrong: str, error: type[Exception]) -> None:
    """Whoever complains, our reader of URLs or the driver's."""
    with pytest.raises(error) as caught:  # noqa: PT012 (whichever of the two complains)
        store = open_store(f"postgresql://{wrong.format(SECRET)}")
        await store.registry.status(Request(scope=ALL))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
