-- Facts about the server and this schema, for diagnosis.py. Locks: none. Other roles' sessions show themselves only to
-- members of pg_monitor.

-- name: server
SELECT current_setting('server_version') AS server,
       current_setting('server_version_num')::int AS version,
       current_setting('fsync')::boolean AS is_synced,
       current_setting('full_page_writes')::boolean AS is_whole,
       (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS synchronous_commit,
       current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean AS is_vacuumed,
       pg_is_in_recovery() AS is_replica,
       (SELECT setting::int FROM pg_settings WHERE name = 'idle_session_timeout') AS idle_session_ms,
       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
       (SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'fairlane') AS own_connections,
       current_setting('max_connections')::int AS max_connections,
       pg_has_role((SELECT relowner FROM pg_class WHERE oid = $s${schema}.job$s$::regclass), 'USAGE') AS is_owner

-- name: holder
-- Who keeps dead rows from being removed for longest: a session, a prepared transaction, or a replication slot.
SELECT who, seconds FROM (
  SELECT format('session %s (%s, %s, %s)', pid, usename, nullif(application_name, ''), state) AS who,
         extract(epoch FROM clock_timestamp() - xact_start)::int AS seconds
  FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND backend_type <> 'autovacuum worker' AND pid <> pg_backend_pid()
  UNION ALL
  SELECT format('prepared transaction %s (%s)', gid, owner), extract(epoch FROM clock_timestamp() - prepared)::int
  FROM pg_prepared_xacts
  UNION ALL
  SELECT format('replication slot %s', slot_name), (age(xmin) / 1000)::int
  FROM pg_replication_slots WHERE xmin IS NOT NULL AND NOT active
) holders WHERE seconds IS NOT NULL ORDER BY seconds DESC LIMIT 1

-- name: dead
SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
WHERE schemaname = $1 ORDER BY n_dead_tup DESC LIMIT 1

-- name: schema
-- `days`: how many of today and tomorrow have a day of history; those of other times, as of a clock that was wrong, do not
-- count.
SELECT (SELECT count(*)::int FROM {schema}.history_days()
        WHERE until > {schema}.now_or($1) AND since <= {schema}.now_or($1) + 86400000000) AS days,
       (SELECT count(*)::int FROM (SELECT 1 FROM {schema}.history_rest LIMIT 10000) rest) AS in_rest,
       (SELECT count(*)::int FROM (SELECT 1 FROM {schema}.delta LIMIT 100000) waiting) AS deltas
