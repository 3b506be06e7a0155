"""Break each promise on purpose, one at a time, and see that the test named for it goes red."""
