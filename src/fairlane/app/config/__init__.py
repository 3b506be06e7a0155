"""Read the configuration of an application: file, environment and command line over the code (S55)."""
