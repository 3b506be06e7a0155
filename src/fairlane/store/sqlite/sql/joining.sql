-- Join the application's own transaction.
-- Index: none. Locks: the writer's, from the first statement on.

-- name: write_nothing
-- Becomes the writer without reading first: who has read may find that somebody has written since.
DELETE FROM meta WHERE 0
