"""The fairness scenarios of `fairlane bench`: who waits for whom, and who gets which share."""
