-- A claim asks for the limits of those tenants that are next, by the key of their terms, and no longer whether anybody has any.
DROP FUNCTION IF EXISTS {s}.has_own_limits(text);
DROP INDEX IF EXISTS {s}.term_limits;

-- Who was served since the last sweep is not forgotten by the next.
ALTER TABLE {s}.queue ADD COLUMN swept_to bigint NOT NULL DEFAULT 0; -- the floor of virtual time at that
