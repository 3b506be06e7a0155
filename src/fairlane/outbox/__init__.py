"""Jobs for applications whose database is not the store: a table of their own, and a relay to empty it."""
