"""Configurations for tests: a separate file and environment, nothing of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlane.app.config.configuration import Configuration
from fairlane.app.settings import Settings, settings_of
from fairlane.model.errors import ConfigError

FILE = "fairlane.toml"


class World:
    """A folder with a file in it, and an environment."""

    def __init__(self, folder: Path) -> None:
        """Begin empty."""
        self.folder = folder
        self.environ: dict[str, str] = {}

    def write(self, text: str, name: str = FILE) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def configuration(self, text: str | None = None, **code: Any) -> Configuration:
        """Configure with this file, over what code says."""
        config: Path | Mapping[str, Any] = {} if text is None else self.write(text)
        return Configuration(settings_of(**code), config, self.environ)

    def settings(self, text: str | None = None, **code: Any) -> Settings:
        """Read it."""
        return self.configuration(text, **code).settings

    def error(self, text: str | None = None, **code: Any) -> ConfigError:
        """Read a bad configuration and return the error."""
        configuration = self.configuration(text, **code)
        try:
            read = configuration.settings
        except ConfigError as error:
            return error
        message = f"nothing was refused: {read}"
        raise AssertionError(message)
