"""Real servers for tests: private, on free ports, gone when the process that started them is."""
