"""A scope is one tenant or all of them; it never covers a tenant by accident (S9)."""

from __future__ import annotations

import pytest

from fairlane.model.scope import SYSTEM, Scope


@pytest.mark.parametrize(
    ("scope", "tenant", "is_covered"),
    [
        (Scope("acme"), "acme", True),
        (Scope("acme"), "globex", False),
        (Scope("acme"), "Acme", False),
        (Scope("acme"), "acme ", False),
        (Scope("acme"), "", False),
        (Scope("acme"), SYSTEM, False),
        (Scope(SYSTEM), "acme", False),
        (Scope(SYSTEM), SYSTEM, True),
        (Scope("*"), "acme", False),
        (Scope(""), "acme", False),
        (Scope.all(), "acme", True),
        (Scope.all(), SYSTEM, True),
    ],
)
def test_a_scope_covers_its_tenant_and_no_other(scope: Scope, tenant: str, is_covered: bool) -> None:
    """Names compare byte for byte, and the system tenant sees no more than others."""
    assert scope.covers(tenant) is is_covered


def test_all_is_one_value_and_there_is_no_default() -> None:
    """Who forgets to say a scope gets an error, not everybody's jobs."""
    assert Scope.all() == Scope(None)
    assert Scope.all() is Scope.all()
    with pytest.raises(TypeError):
        Scope()  # type: ignore[call-arg]


def test_a_scope_cannot_be_widened_after_the_fact() -> None:
    """It is frozen, and equal scopes are one key."""
    scope = Scope("acme")
    with pytest.raises(AttributeError):
        scope.tenant = None  # type: ignore[misc]
    assert {scope, Scope("acme")} == {scope}
