"""The Redis and Valkey store: one script per verb, one hash tag per installation."""
