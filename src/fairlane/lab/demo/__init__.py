"""The demo: one noisy tenant and a dozen quiet ones, run fairly, then first in, first out."""
