"""How callers of the web become known (S91): what a request brings, the sign-in page, and the first sign-in.

What is checked against the store is decided in `app.access`; here is only what belongs to HTTP.
"""
