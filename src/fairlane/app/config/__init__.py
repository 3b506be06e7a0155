"""Read how an application is configured: file, environment, command line, over what code declares (S55)."""
