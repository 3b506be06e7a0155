"""What an outbox and a relay are made with: an application, and how its library marks parameters."""

from __future__ import annotations

from typing import get_args

from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import instance, one_of
from fairlane.outbox.table import ParamStyle


def check_app(app: object) -> None:
    """Refuse what is no application."""
    instance("app", app, Fairlane, "a Fairlane(...)")


def check_style(paramstyle: object) -> None:
    """Refuse a style that PEP 249 does not know."""
    one_of("paramstyle", paramstyle, *get_args(ParamStyle))
