"""Administration: the namespaces `app.jobs`, `queues`, `tenants`, `tasks`, `gates` and `workers`.

Each call is checked (`validation`), scoped to the caller's tenant, and sent to the store; `views`, `counts`,
`queue_stats` and `explain` are what comes back. `controls` has pause, close, drain and override, which
tenants, queues and tasks share.
"""
