"""The `fairlane` command: everything an operator asks or does, from a terminal or a script."""
