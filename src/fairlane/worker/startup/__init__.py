"""What a worker does before its first claim: choose lanes, check versions, declare policies, register."""
