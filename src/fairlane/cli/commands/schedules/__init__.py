"""`fairlane schedules`: look at schedules and change them."""
