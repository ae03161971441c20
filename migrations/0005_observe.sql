-- What operators see.

-- Why an attempt failed, in one word: nothing where a coordinator stored it that did not say.
ALTER TABLE faults ADD COLUMN kind text CHECK (length(kind) BETWEEN 1 AND 32);

-- Where the trace of a version goes on until an edition shows it, and that of an edition until it
-- is over: a W3C traceparent. There are rows only where traces are exported, and whoever deletes
-- them deletes nothing else.
CREATE TABLE traces (
    subject text NOT NULL CHECK (subject IN ('version', 'edition')),
    id integer NOT NULL,
    parent text NOT NULL CHECK (length(parent) = 55),
    PRIMARY KEY (subject, id)
);
