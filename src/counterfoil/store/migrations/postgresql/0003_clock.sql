-- clock: the latest time that a transaction judged by, kept once a second: nobody goes on from before it.
CREATE TABLE clock (
    n  INTEGER PRIMARY KEY CHECK (n = 1),
    at DOUBLE PRECISION NOT NULL
);

INSERT INTO clock (n, at) VALUES (1, 0.0);
