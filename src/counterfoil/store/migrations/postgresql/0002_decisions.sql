-- policy: every policy that was ever in force, and the last one is.
CREATE TABLE policy (
    n      BIGINT PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL,
    at     DOUBLE PRECISION NOT NULL,
    record BYTEA NOT NULL,
    policy BYTEA NOT NULL,
    hash   BYTEA NOT NULL
);

CREATE TRIGGER policy_is_kept BEFORE DELETE OR UPDATE ON policy FOR EACH ROW EXECUTE FUNCTION is_append_only();
CREATE TRIGGER policy_is_not_emptied BEFORE TRUNCATE ON policy EXECUTE FUNCTION is_append_only();

-- refusal: how often a call was answered from an operation's receipt.
CREATE TABLE refusal (
    n       BIGINT PRIMARY KEY,
    times   BIGINT NOT NULL,
    last_at DOUBLE PRECISION NOT NULL
);

CREATE INDEX operation_waiting ON operation (due_at) WHERE unresolved = 0 AND step <> '';

-- Retention may remove what stands before an event that says what it came to; nothing else is ever deleted.
CREATE FUNCTION is_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM event WHERE id > OLD.id AND id < (OLD.id / 32768 + 1) * 32768 AND kind = 'removed'
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'event is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;

DROP TRIGGER event_is_kept ON event;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION is_removed();

-- A pattern is plain text in which * stands for any run of characters, as SQLite's own glob has it.
CREATE FUNCTION glob(pattern TEXT, value TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT value LIKE replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
$$;
