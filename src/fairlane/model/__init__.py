"""Decisions, and nothing else. No clock, no store, no asyncio: `now` and random draws are arguments."""
