-- Turns (one tenant of one queue) and strands (one task of it): finding them, and writing them back.
-- Index: turn_name, turn_order, strand_name, the primary keys. Locks: the writer's.

-- name: turn_named
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until, parked_vt, parked_since
FROM turn WHERE queue = ?1 AND tenant = ?2

-- name: next_turn
SELECT coalesce(max(turn), 0) + 1 FROM turn

-- name: next_strand
SELECT coalesce(max(strand), 0) + 1 FROM strand

-- name: strand_named
SELECT strand, turn, queue, task, jobs, ready, head_key, head_id, parked, gate, parked_until,
       parked_vt, parked_since
FROM strand WHERE turn = ?1 AND task = ?2

-- name: strands_with_turns
-- By their numbers, which are a JSON array.
SELECT s.strand, s.turn, s.queue, s.task, s.jobs, s.ready, s.head_key, s.head_id, s.parked, s.gate, s.parked_until,
       s.parked_vt, s.parked_since, f.turn, f.queue, f.tenant, f.vt, f.ready_since, f.is_ready, f.open_strands, f.delayed, f.ready,
       f.running, f.arrival, f.pace, f.parked, f.parked_until, f.parked_vt, f.parked_since
FROM strand s JOIN turn f USING (turn) WHERE s.strand IN (SELECT value FROM json_each(?1))

-- name: lowest
SELECT vt FROM turn WHERE queue = ?1 AND is_ready = 1 ORDER BY vt, ready_since LIMIT 1

-- name: sequence
SELECT value FROM meta WHERE name = 'sequence'

-- name: sequence_set
INSERT INTO meta (name, value) VALUES ('sequence', ?1) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: head
SELECT sort_key, id FROM ready WHERE strand = ?1 ORDER BY strand, sort_key, id LIMIT 1

-- name: strand_in
INSERT INTO strand (strand, turn, queue, task, jobs, ready, head_key, head_id, parked, gate, parked_until,
                    parked_vt, parked_since)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)

-- name: strand_set
UPDATE strand SET jobs = ?1, ready = ?2, head_key = ?3, head_id = ?4, parked = ?5, gate = ?6, parked_until = ?7,
                  parked_vt = ?8, parked_since = ?9
WHERE strand = ?10

-- name: strand_counted
-- Names no column of an index: SQLite writes an entry anew for each that is named, changed or not.
UPDATE strand SET jobs = ?1, ready = ?2 WHERE strand = ?3

-- name: strand_out
DELETE FROM strand WHERE strand = ?1

-- name: turn_in
INSERT INTO turn (turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
                  pace, parked, parked_until, parked_vt, parked_since)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)

-- name: turn_set
UPDATE turn SET vt = ?1, ready_since = ?2, is_ready = ?3, open_strands = ?4, delayed = ?5, ready = ?6,
                running = ?7, arrival = ?8, pace = ?9, parked = ?10, parked_until = ?11,
                parked_vt = ?12, parked_since = ?13
WHERE turn = ?14

-- name: turn_counted
-- Names no column of an index, as above.
UPDATE turn SET open_strands = ?1, delayed = ?2, ready = ?3 WHERE turn = ?4

-- name: turn_out
DELETE FROM turn WHERE turn = ?1
