"""Stores: the contract, what the stores share, and a package for each."""
