-- uses: journal
-- Append entries to journals.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the entries, packed (ENTRY_FORMAT).
journal.append_all(ARGV[2])
commit()
