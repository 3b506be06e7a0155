"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fairlane", deadline=None, print_blob=True)
settings.load_profile("fairlane")
