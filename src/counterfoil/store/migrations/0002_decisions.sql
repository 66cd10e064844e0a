-- policy: every policy that was ever in force, and the last one is. Each is a person's decision, chained like events.
CREATE TABLE policy (
    n      INTEGER PRIMARY KEY,
    digest TEXT NOT NULL,
    at     REAL NOT NULL,
    record BLOB NOT NULL,
    policy BLOB NOT NULL,
    hash   BLOB NOT NULL
) STRICT;

CREATE TRIGGER policy_is_kept BEFORE DELETE ON policy
BEGIN SELECT RAISE(ABORT, 'policies are append-only'); END;

CREATE TRIGGER policy_is_final BEFORE UPDATE ON policy
BEGIN SELECT RAISE(ABORT, 'policies are append-only'); END;

-- refusal: how often a call was answered from an operation's receipt instead of being sent; counted in batches.
CREATE TABLE refusal (
    n       INTEGER PRIMARY KEY,
    times   INTEGER NOT NULL,
    last_at REAL NOT NULL
) STRICT;

-- What waits without having been sent: for an approval, or approved. No ordinary call ever stands in it.
CREATE INDEX operation_waiting ON operation (due_at) WHERE unresolved = 0 AND step <> '';

-- Retention may remove what stands before an event that says what it came to; nothing else is ever deleted.
DROP TRIGGER event_is_kept;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event
WHEN NOT EXISTS (
    SELECT 1 FROM event WHERE id > OLD.id AND id < (OLD.id / 32768 + 1) * 32768 AND kind = 'removed'
)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
