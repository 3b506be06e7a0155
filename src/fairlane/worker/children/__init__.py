"""Handlers in child processes: what the worker does (parent), what a child does, and what both say.

Both sides         `protocol`: frames over one socket pair
The worker's side  `pool` (who gets a child), `child_process` (one child), `launch` (how it is started),
                   `suspects` (jobs that run alone), `quarantine` (tasks that crashed), `output`, `memory`,
                   `death`, `guardian_link`, `guardian`
A child's side     `child/`: `main`, `attempt` (one job), `stops`, `log`, `leftovers`
"""
