"""Who is next: fairness between tenants, priority, and the queues of a lane."""
