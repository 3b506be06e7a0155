"""Commands about queues, tenants, tasks and gates: show them, limit them, pause and drain them."""
