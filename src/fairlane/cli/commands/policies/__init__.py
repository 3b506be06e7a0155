"""Commands about queues, tenants, tasks, gates and breakers: show them, limit them, pause and drain them."""
