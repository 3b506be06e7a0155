"""Every public callable, called from inside a tenant's handler: that tenant's alone is there (S9)."""
