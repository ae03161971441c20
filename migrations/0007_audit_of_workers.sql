-- What the coordinator finds out about workers: matches that it recounts from their records, and
-- matches that a second worker plays once more. Neither ever changes a result.

CREATE TYPE audit_kind AS ENUM (
    'recount',    -- the record is replayed through the rules
    'shadow'      -- another worker plays the match again, and the transcripts are compared
);
CREATE TYPE audit_state AS ENUM (
    'waiting',
    'leased',       -- the second play goes on
    'agreed',
    'disagreed',
    'unreadable',   -- the record is no record at all
    'absent',       -- there is no record
    'skipped'       -- cannot be done here: other rules, or too many faults
);

-- Rows are written when their match is counted, and changed until they are over.
CREATE TABLE match_audits (
    number bigint NOT NULL,
    edition integer NOT NULL,
    -- The worker that reported the match.
    worker integer NOT NULL,
    -- The worker that played it once more.
    second_worker integer,
    kind audit_kind NOT NULL,
    state audit_state NOT NULL DEFAULT 'waiting',
    -- Leases so far. With the match it is the fencing token.
    attempt smallint NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    deadline timestamptz,
    -- When that worker reported it.
    reported_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- What differs, or why it was skipped.
    reason text CHECK (length(reason) BETWEEN 1 AND 4000),
    PRIMARY KEY (edition, number, kind),
    CONSTRAINT leased_audit_has_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT leased_audit_has_second_worker
        CHECK (state <> 'leased' OR second_worker IS NOT NULL),
    CONSTRAINT recount_has_no_second_worker CHECK (kind = 'shadow' OR second_worker IS NULL),
    CONSTRAINT second_worker_is_another CHECK (second_worker <> worker),
    CONSTRAINT ended_audit_has_its_time
        CHECK ((state IN ('waiting', 'leased')) = (ended_at IS NULL)),
    CONSTRAINT difference_has_reason CHECK (state <> 'disagreed' OR reason IS NOT NULL)
);
CREATE INDEX match_audits_waiting ON match_audits (kind, faults, edition, number)
    WHERE state = 'waiting';
CREATE INDEX match_audits_leased ON match_audits (deadline) WHERE state = 'leased';
CREATE INDEX match_audits_of_worker ON match_audits (worker, kind, state);

-- Workers that get no leases, and whose reports are refused. A table of its own: programs of the
-- version before read all columns of `workers`.
CREATE TABLE suspensions (
    worker integer PRIMARY KEY REFERENCES workers,
    at timestamptz NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 4000),
    -- When an organiser let it play again: what it reported before then is no reason to suspend it
    -- once more.
    reinstated_at timestamptz CHECK (reinstated_at >= at)
);

-- How much the results of a worker in an edition differ from those of the others: reckoned once,
-- when the edition is complete.
CREATE TABLE worker_residuals (
    edition integer NOT NULL,
    worker integer NOT NULL,
    chi_square double precision NOT NULL CHECK (chi_square >= 0),
    p double precision NOT NULL CHECK (p BETWEEN 0 AND 1),
    PRIMARY KEY (edition, worker)
);
CREATE TABLE residual_checks (
    edition integer PRIMARY KEY,
    at timestamptz NOT NULL
);
