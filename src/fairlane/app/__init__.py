"""The application side: what users import to declare tasks, enqueue jobs and administer them.

- `fairlane.py`: the application object. `client.py` talks to the store for it, `portal.py` runs blocking
  calls, `open_stores.py` keeps one store per event loop.
- `task/`: tasks, their handlers, and the context of a running attempt.
- `enqueue/`: from a call to a checked new job, and what is told back.
- `arguments/`: type hints as checks and as JSON Schema, for arguments from Python and from JSON.
- `admin/`: `app.jobs`, `app.queues`, `app.tenants`, `app.tasks`, `app.gates`, `app.workers`.
- `config/`: file, environment and command line become `settings.py` and `worker_settings.py`.
- `ambient.py`: for which tenant the running code acts; every call to a store asks it for a scope.
- `job.py`: the snapshot of a job that callers hold.

Knows the contract of a store, but no store; runs no worker.
"""
