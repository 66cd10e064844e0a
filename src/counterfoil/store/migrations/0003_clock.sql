-- clock: the latest time that a transaction judged by, kept once a second: a restart never goes on from before it.
CREATE TABLE clock (
    n  INTEGER PRIMARY KEY CHECK (n = 1),
    at REAL NOT NULL
) STRICT;

INSERT INTO clock (n, at) VALUES (1, 0.0);
