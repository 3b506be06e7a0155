"""Passwords that are cheap to hash, so that hundreds can be; one test asks for the real cost."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from argon2 import PasswordHasher

from fairlane.app.access import passwords


@pytest.fixture(autouse=True)
def cheap_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Hash at the least cost."""
    passwords._nobodys_hash.cache_clear()
    if "real_cost" not in request.fixturenames:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        monkeypatch.setattr(passwords, "_hasher", lambda: cheap)
    yield
    passwords._nobodys_hash.cache_clear()


@pytest.fixture
def real_cost() -> None:
    """Hash as in production."""
