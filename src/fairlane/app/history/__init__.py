"""`app.history`: finished jobs in files. `exporting` writes them, `importing` takes them back (S116)."""
