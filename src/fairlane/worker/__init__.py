"""The life of a job in a worker: fetch, run, renew, watch, settle. Decides nothing that the model decides."""
