"""`fairlane users`, `tokens` and `sessions`: who may use the web, and who does."""
