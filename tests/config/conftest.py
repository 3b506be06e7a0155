"""Fixtures: a configuration world for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty folder and an empty environment."""
    return World(tmp_path)
