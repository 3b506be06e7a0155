"""Breakers: outcomes, claims, permits of handlers, operators."""
