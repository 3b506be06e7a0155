"""Compare other Python job queues with Fairlane, in turn on the same machine: `make peers`."""
