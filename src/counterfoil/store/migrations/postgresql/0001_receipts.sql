-- book: what this database is. SQLite keeps the same in the file's header.
CREATE TABLE book (
    n      INTEGER PRIMARY KEY CHECK (n = 1),
    id     TEXT NOT NULL,
    schema INTEGER NOT NULL
);

-- operation: the current projection; see the migration of SQLite of the same number, of which this is the mirror.
-- Texts compare by their bytes: an index that follows a language breaks when the system's own tables are upgraded.
CREATE TABLE operation (
    n           BIGINT PRIMARY KEY,
    id          TEXT COLLATE "C" NOT NULL,
    tenant      TEXT COLLATE "C" NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    account     TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    effect      TEXT COLLATE "C" NOT NULL,
    owner       TEXT COLLATE "C" NOT NULL,
    value       DOUBLE PRECISION NOT NULL CHECK (value <> 'NaN'),
    created_at  DOUBLE PRECISION NOT NULL,
    permission  TEXT COLLATE "C" NOT NULL CHECK (permission IN ('pending', 'authorized', 'expired', 'revoked', 'denied')),
    dispatch    TEXT COLLATE "C" NOT NULL CHECK (dispatch IN ('not_started', 'started', 'completed')),
    outcome     TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('unobserved', 'accepted', 'succeeded', 'rejected', 'unknown')),
    disposition TEXT COLLATE "C" NOT NULL CHECK (disposition IN ('open', 'closed', 'abandoned')),
    discrepancy TEXT COLLATE "C" NOT NULL CHECK (discrepancy IN ('none', 'open', 'settled')),
    attempts    INTEGER NOT NULL,
    exposure    INTEGER NOT NULL,
    unresolved  INTEGER NOT NULL,
    settled_by  TEXT COLLATE "C" NOT NULL,
    held_by     TEXT COLLATE "C" NOT NULL,
    looks       INTEGER NOT NULL,
    step        TEXT COLLATE "C" NOT NULL,
    due_at      DOUBLE PRECISION NOT NULL,
    worker      TEXT COLLATE "C" NOT NULL,
    deadline    DOUBLE PRECISION NOT NULL,
    updated_at  DOUBLE PRECISION NOT NULL,
    seq         INTEGER NOT NULL
);

CREATE UNIQUE INDEX operation_key ON operation (tenant, actor, action, key);

CREATE UNIQUE INDEX operation_hold ON operation (effect, unresolved) WHERE unresolved > 0;

-- event: append-only, one row per commit.
CREATE TABLE event (
    id     BIGINT PRIMARY KEY,
    kind   TEXT COLLATE "C" NOT NULL,
    at     DOUBLE PRECISION NOT NULL,
    record BYTEA NOT NULL,
    body   BYTEA,
    hash   BYTEA NOT NULL
);

CREATE FUNCTION is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER event_is_kept BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION is_append_only();
CREATE TRIGGER event_is_final BEFORE UPDATE OF id, kind, at, record, hash ON event
    FOR EACH ROW EXECUTE FUNCTION is_append_only();
CREATE TRIGGER event_is_not_emptied BEFORE TRUNCATE ON event EXECUTE FUNCTION is_append_only();

-- body: payloads and provider bodies too large for the event row.
CREATE TABLE body (
    id    BIGINT PRIMARY KEY REFERENCES event (id),
    bytes BYTEA
);

-- worker: every process that has this store open.
CREATE TABLE worker (
    id         TEXT COLLATE "C" PRIMARY KEY,
    host       TEXT COLLATE "C" NOT NULL,
    boot       TEXT COLLATE "C" NOT NULL,
    pid        BIGINT NOT NULL,
    lock_path  TEXT COLLATE "C" NOT NULL,
    lock_inode BIGINT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    marked_at  DOUBLE PRECISION NOT NULL
);
