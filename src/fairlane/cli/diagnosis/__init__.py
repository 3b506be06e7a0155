"""The checks of `fairlane doctor`: where the store is, its health, its workers, its counters."""
