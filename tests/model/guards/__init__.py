"""Guards around what jobs call."""
