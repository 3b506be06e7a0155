-- Enqueue: one call where nothing can refuse the batch; else what is known of it, its keys, and the jobs that came in.
-- What runs inside an application's transaction has the same text.

-- name: enqueue
SELECT {s}.enqueue($1::bigint, $2::text[], $3::int, $4::int, $5::bytea[], $6::uuid[], $7::text[], $8::text[], $9::text[],
  $10::bytea[], $11::bigint[], $12::int[], $13::int[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
  $18::text[], $19::text[], $20::text[], $21::text[], $22::uuid[], $23::int[], $24::bigint[], $25::boolean[],
  $26::text[], $27::bytea[], $28::text[])

-- name: bring_in
SELECT {s}.bring_in($1::bigint, $2::uuid[], $3::text[], $4::text[], $5::text[],
  $6::bytea[], $7::bigint[], $8::int[], $9::int[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
  $14::text[], $15::text[], $16::text[], $17::text[], $18::uuid[], $19::int[], $20::bigint[], $21::boolean[],
  $22::text[], $23::bytea[], $24::text[])

-- name: standing
SELECT * FROM {s}.standing($1::bigint, $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[])

-- name: take_keys
SELECT unnest(tenants), unnest(keys) FROM {s}.take_keys($1::text[], $2::text[], $3::uuid[], $4::bytea[])

-- name: take_dedup
SELECT unnest(tenants), unnest(tasks), unnest(keys)
FROM {s}.take_dedup($1::text[], $2::text[], $3::text[], $4::uuid[])

-- name: holders
SELECT k.tenant, k.key, k.id, k.fingerprint, k.state, k.settled_at FROM unnest($1::text[], $2::text[]) u (tenant, key)
CROSS JOIN LATERAL (SELECT * FROM {s}.idempotency i WHERE i.tenant = u.tenant AND i.key = u.key
                    ORDER BY i.tenant, i.key LIMIT 1) k

-- name: duplicates
SELECT k.tenant, k.task, k.key, k.id FROM unnest($1::text[], $2::text[], $3::text[]) u (tenant, task, key)
CROSS JOIN LATERAL (SELECT * FROM {s}.dedup d WHERE d.tenant = u.tenant AND d.task = u.task AND d.key = u.key
                    ORDER BY d.tenant, d.task, d.key LIMIT 1) k

-- name: hold_dead
SELECT tenant, key FROM {s}.hold_dead($1::text[], $2::text[])

-- name: leave_keys
SELECT {s}.leave_keys($1::text[], $2::text[])

-- name: leave_dedup
SELECT {s}.leave_dedup($1::text[], $2::text[], $3::text[])

-- name: relieve
SELECT {s}.relieve($1::bigint, $2::text)
