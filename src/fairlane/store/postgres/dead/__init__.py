"""Dead letters: read, reviewed, run again. Each verb that is more than a call has a file of its own."""
