"""The outbox, for applications whose database is not the store.

Jobs are rows in a table of the application's own database, added in its own transaction (`outbox`). A relay
moves them to the store exactly once, in order for each tenant (`relay`, `transfer`).
"""
