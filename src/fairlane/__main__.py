"""`python -m fairlane`: the command, where it is not on the path."""

from __future__ import annotations

from fairlane.cli.main import main

if __name__ == "__main__":
    main()
