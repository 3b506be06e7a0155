"""Jobs as workers move them: the claims facet, one file for each verb that is more than a call."""
