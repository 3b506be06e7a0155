"""Rules, overrides, pauses and closes: `facet` has the verbs, `policy_cache` what claims read."""
