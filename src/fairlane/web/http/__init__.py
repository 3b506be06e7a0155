"""What is true of every request, whoever asks: its id, its proxy, its host, its rate, the probes, errors."""
