"""Integrations with other libraries. Each imports its library only when it is used."""
