"""`fairlane doctor` and its parts: the checks, past findings, one job, repair."""
