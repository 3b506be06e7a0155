-- Purpose: read and write tenant queues (one tenant in one queue) and strands (one task of a tenant queue).
-- Parameters: names, numbers, or the columns in the order of `values()` in the code.
-- Index: tenant_queue_name, tenant_queue_order, strand_name, the primary keys. Locks: the write lock.

-- name: tenant_queue_named
SELECT {tenant_queue} FROM tenant_queue WHERE queue = ?1 AND tenant = ?2

-- name: next_tenant_queue
SELECT coalesce(max(tenant_queue), 0) + 1 FROM tenant_queue

-- name: next_strand
SELECT coalesce(max(strand), 0) + 1 FROM strand

-- name: strand_named
SELECT {strand} FROM strand WHERE tenant_queue = ?1 AND task = ?2

-- name: strands_with_tenant_queues
-- ?1 the numbers of strands, a JSON array.
SELECT {strand}, {tenant_queue}
FROM strand JOIN tenant_queue USING (tenant_queue) WHERE strand.strand IN (SELECT value FROM json_each(?1))

-- name: lowest
SELECT vt FROM tenant_queue WHERE queue = ?1 AND is_ready = 1 ORDER BY vt, ready_since LIMIT 1

-- name: sequence
SELECT value FROM meta WHERE name = 'sequence'

-- name: update_sequence
INSERT INTO meta (name, value) VALUES ('sequence', ?1) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: head
SELECT sort_key, id FROM ready WHERE strand = ?1 ORDER BY strand, sort_key, id LIMIT 1

-- name: insert_strand
INSERT INTO strand {insert_strand}

-- name: update_strand
UPDATE strand SET {assign_strand} WHERE strand = ?1

-- name: update_strand_counts
-- Sets no column of an index: SQLite rewrites the index entry of every column that is set, changed or not.
UPDATE strand SET jobs = ?2, ready = ?3 WHERE strand = ?1

-- name: delete_strand
DELETE FROM strand WHERE strand = ?1

-- name: insert_tenant_queue
INSERT INTO tenant_queue {insert_tenant_queue}

-- name: update_tenant_queue
UPDATE tenant_queue SET {assign_tenant_queue} WHERE tenant_queue = ?1

-- name: update_tenant_queue_counts
-- Sets no column of an index, as above.
UPDATE tenant_queue SET open_strands = ?2, delayed = ?3, ready = ?4 WHERE tenant_queue = ?1

-- name: delete_tenant_queue
DELETE FROM tenant_queue WHERE tenant_queue = ?1
