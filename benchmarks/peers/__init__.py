"""Other Python job queues beside Fairlane, measured in turn on the same machine: `make peers`."""
