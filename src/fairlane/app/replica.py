"""The application once more, on a replica of its store: the same tasks and settings, for reading alone."""

from __future__ import annotations

from fairlane.app.client import Client
from fairlane.app.fairlane import Fairlane
from fairlane.app.task.tasks import Tasks


class ReplicaReader(Fairlane):
    """Reads what a replica has, which may be a little older. Its store refuses every change."""

    def __init__(self, app: Fairlane, url: str) -> None:
        """Open nothing yet. Tasks that the application declares later are known here, too."""
        Tasks.__init__(self)
        self.configuration = app.configuration.with_url(url)
        self.import_path = app.import_path
        self.registry = app.registry
        self._client = Client(self.configuration, self.registry)
        self._make_namespaces()
