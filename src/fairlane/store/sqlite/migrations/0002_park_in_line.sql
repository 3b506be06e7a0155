-- What is parked remembers whose turn it was, so that it is woken in an order that an index has, and a part at a
-- time; estimates of how long a task runs are kept per queue; tenants are found without their queues.

ALTER TABLE turn ADD COLUMN parked_vt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN parked_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE strand ADD COLUMN parked_vt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE strand ADD COLUMN parked_since INTEGER NOT NULL DEFAULT 0;

UPDATE turn SET parked_vt = vt, parked_since = ready_since WHERE parked IS NOT NULL;
UPDATE strand SET (parked_vt, parked_since) =
  (SELECT vt, ready_since FROM turn WHERE turn.turn = strand.turn) WHERE parked IS NOT NULL;

DROP INDEX turn_parked;
CREATE INDEX turn_parked ON turn (queue, parked_until, parked_vt, parked_since) WHERE parked IS NOT NULL;
DROP INDEX strand_parked;
CREATE INDEX strand_parked ON strand (queue, parked_until, parked_vt, parked_since, task) WHERE parked IS NOT NULL;
CREATE INDEX strand_line ON strand (queue, gate, parked_vt, parked_since, task) WHERE gate IS NOT NULL;
CREATE INDEX turn_tenant ON turn (tenant, queue);

-- A task's estimate goes to every queue in which the task has jobs, of any state, that are still kept. The old
-- column stays, unread: workers of the version before write it (S67).
CREATE TABLE estimate (
  queue    TEXT NOT NULL,
  task     TEXT NOT NULL,
  estimate INTEGER NOT NULL,
  PRIMARY KEY (queue, task)
) STRICT, WITHOUT ROWID;
INSERT INTO estimate (queue, task, estimate)
  SELECT DISTINCT body.queue, body.task, task.estimate
  FROM body JOIN task ON task.name = body.task WHERE task.estimate IS NOT NULL;
