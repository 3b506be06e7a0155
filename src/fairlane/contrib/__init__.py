"""Bridges to other people's libraries. Each imports its library when it is used, not before."""
