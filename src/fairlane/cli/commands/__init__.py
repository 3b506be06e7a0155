"""The commands, one module for each or for a few that belong together. `fairlane.cli.main` lists them."""
