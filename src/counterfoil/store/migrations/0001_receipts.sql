-- operation: the current projection, one small row of near-constant size.
-- Words are checked by OR: each IN list would build a table in memory on every write.
-- Its row number is the first 48 bits of its id, so that finding it by id costs no index.
CREATE TABLE operation (
    n           INTEGER PRIMARY KEY,
    id          TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    actor       TEXT NOT NULL,
    action      TEXT NOT NULL,
    key         TEXT NOT NULL,
    account     TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    effect      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    value       REAL NOT NULL,
    created_at  REAL NOT NULL,
    permission  TEXT NOT NULL CHECK (permission = 'pending' OR permission = 'authorized' OR permission = 'expired' OR permission = 'revoked' OR permission = 'denied'),
    dispatch    TEXT NOT NULL CHECK (dispatch = 'not_started' OR dispatch = 'started' OR dispatch = 'completed'),
    outcome     TEXT NOT NULL CHECK (outcome = 'unobserved' OR outcome = 'accepted' OR outcome = 'succeeded' OR outcome = 'rejected' OR outcome = 'unknown'),
    disposition TEXT NOT NULL CHECK (disposition = 'open' OR disposition = 'closed' OR disposition = 'abandoned'),
    discrepancy TEXT NOT NULL CHECK (discrepancy = 'none' OR discrepancy = 'open' OR discrepancy = 'settled'),
    attempts    INTEGER NOT NULL,
    exposure    INTEGER NOT NULL,
    unresolved  INTEGER NOT NULL,
    settled_by  TEXT NOT NULL,
    held_by     TEXT NOT NULL,
    looks       INTEGER NOT NULL,
    step        TEXT NOT NULL,
    due_at      REAL NOT NULL,
    worker      TEXT NOT NULL,
    deadline    REAL NOT NULL,
    updated_at  REAL NOT NULL,
    seq         INTEGER NOT NULL
) STRICT;

-- One operation per key of one accountable principal.
CREATE UNIQUE INDEX operation_key ON operation (tenant, actor, action, key);

-- The hold: one unresolved operation per effect identity. Slots above 1 are taken only by settled operations
-- that late evidence reopened while another holds the effect: evidence is never refused, and the holder's settling
-- hands slot 1 on. No trigger guards this table: it would cost every statement a journal of its own.
CREATE UNIQUE INDEX operation_hold ON operation (effect, unresolved) WHERE unresolved > 0;

-- event: append-only, one row per commit; id = n * 32768 + seq keeps an operation's events together.
CREATE TABLE event (
    id     INTEGER PRIMARY KEY,
    kind   TEXT NOT NULL,
    at     REAL NOT NULL,
    record BLOB NOT NULL,
    body   BLOB,
    hash   BLOB NOT NULL
) STRICT;

CREATE TRIGGER event_is_kept BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER event_is_final BEFORE UPDATE OF id, kind, at, record, hash ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- body: payloads and provider bodies too large for the event row; outside the hash, so that they can be erased.
CREATE TABLE body (
    id    INTEGER PRIMARY KEY REFERENCES event (id),
    bytes BLOB
) STRICT;

-- worker: every process that has this store open, and where the proof of its death is found.
CREATE TABLE worker (
    id         TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    boot       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    lock_path  TEXT NOT NULL,
    lock_inode INTEGER NOT NULL,
    started_at REAL NOT NULL,
    marked_at  REAL NOT NULL
) STRICT;
