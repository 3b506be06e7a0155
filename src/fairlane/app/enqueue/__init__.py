"""Enqueueing: from a call of a task to a checked new job, and the errors and warnings that come back.

`call` holds what is asked for, `job_builder` builds the jobs of a batch with `job_fields` and `checks`, and
`by_name` does the same for tasks known only by name. `refusals`, `unconfirmed` and `log_warnings` turn the
store's answer into errors and warnings. Only `fairlane.app.client` talks to the store.
"""
