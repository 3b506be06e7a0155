"""What a URL says of the server's place, and which of its options are ours."""

from __future__ import annotations

import pytest

from fairlane.model.errors import ConfigError
from fairlane.store.redis.location import Location


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("redis://one:1/3?prefix=p&replicas=2", "redis://one:1/3"),
        ("rediss://u:p@one:1?ssl_ca_certs=/ca&prefix=p", "rediss://u:p@one:1?ssl_ca_certs=%2Fca"),
        ("unix:///run/socket?db=2&prefix=p", "unix:/run/socket?db=2"),
        ("redis://u:p@one:1,two:2/3", "redis://u:p@one:1/3"),
    ],
)
def test_what_is_ours_is_taken_out_of_the_url(url: str, server: str) -> None:
    """The rest goes to the client library, for the first place first."""
    assert Location(url).url == server


@pytest.mark.parametrize(
    ("url", "sentinels", "server"),
    [
        ("redis+sentinel://s1:1,s2:2/jobs", ["redis://s1:1", "redis://s2:2"], "redis://new:9/"),
        ("redis+sentinel://u:p@s1:1/jobs/3", ["redis://s1:1"], "redis://u:p@new:9/3"),
        (
            "redis+sentinel://u:p@s1:1/jobs?sentinel_password=a%2Fb%40c",
            ["redis://:a%2Fb%40c@s1:1"],
            "redis://u:p@new:9/",
        ),
        (
            "rediss+sentinel://s1:1/jobs?sentinel_username=x&ssl_ca_certs=/ca",
            ["rediss://x:@s1:1?ssl_ca_certs=%2Fca"],
            "rediss://new:9/?ssl_ca_certs=%2Fca",
        ),
    ],
)
def test_sentinels_have_passwords_of_their_own_and_the_servers_way_to_speak(
    url: str, sentinels: list[str], server: str
) -> None:
    """The URL's own user is for the server that they name."""
    place = Location(url)
    assert place.sentinels() == sentinels
    assert place.url is None
    place.moved("new", 9)
    assert place.url == server


def test_a_place_is_named_without_its_secrets() -> None:
    """It stands in every error."""
    url = "redis+sentinel://user:secret@s1:1,s2:2/jobs?sentinel_password=secret"
    assert str(Location(url)) == "s1:1,s2:2"
    assert str(Location("unix://user:secret@/run/socket")) == "/run/socket"


def test_after_the_last_place_comes_the_first() -> None:
    """And a failure that somebody has noticed before changes nothing."""
    place = Location("redis://one:1,two:2")
    seen = []
    for _ in range(3):
        seen.append(url := str(place.url))
        place.failed(url)
        place.failed(url)
    assert seen == ["redis://one:1", "redis://two:2", "redis://one:1"]


@pytest.mark.parametrize(
    ("url", "words"),
    [("redis+sentinel://s1:1", "names its service"), ("redis://one?replicas=many", "a whole number")],
)
def test_a_wrong_url_says_what_is_wrong(url: str, words: str) -> None:
    """Before anything is connected."""
    with pytest.raises(ConfigError, match=words):
        Location(url)
