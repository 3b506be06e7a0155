"""Budgets, on every store (S59, S113-S115)."""
