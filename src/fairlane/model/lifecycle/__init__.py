"""The states of a job, whether it is admitted, and what its record becomes."""
