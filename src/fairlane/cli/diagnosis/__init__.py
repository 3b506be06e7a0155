"""What `fairlane doctor` looks at, and what it makes of it: the place, the store, its workers, its books."""
