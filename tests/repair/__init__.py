"""Damage stores behind their back, and let repair find and mend it (S90)."""
