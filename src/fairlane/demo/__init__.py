"""The demonstration: one noisy tenant and a dozen quiet ones, served fairly, then first in, first out."""
