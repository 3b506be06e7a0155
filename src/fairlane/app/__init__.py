"""What an application imports: tasks, the client that enqueues them, and jobs as callers see them."""
