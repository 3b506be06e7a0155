"""How jobs are encoded on the server, and how Python reads and updates them there."""
