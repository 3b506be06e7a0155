"""What `fairlane.web` promises, and what it says where its packages are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fairlane.web
from tests.unmeasured import without_coverage


def test_exactly_these_names_are_public() -> None:
    """Anything else in the package may change."""
    assert sorted(fairlane.web.__all__) == ["Authenticate", "Principal", "Role", "StoredCallers", "asgi"]


@pytest.mark.parametrize("missing", ["starlette", "jinja2", "itsdangerous"])
def test_a_missing_package_is_named_with_the_extra(missing: str) -> None:
    """Whoever forgot the extra reads what to install."""
    program = f"import sys; sys.modules[{missing!r}] = None; import fairlane.web"
    run = subprocess.run(  # noqa: S603 (our own text)
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=without_coverage()
    )
    assert run.returncode == 1
    assert f"fairlane.web needs {missing}; install it with: pip install 'fairlane[web]'" in run.stderr
