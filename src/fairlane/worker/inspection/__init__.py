"""Look inside a running worker: its slots, its stacks, its memory. Works while a handler blocks its loop."""
