"""Jobs as callers and operators see them: the jobs facet, one file for each verb that is more than a call."""
