"""Guards around what jobs call. Pure: a store keeps their states."""
