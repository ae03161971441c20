-- What an audit of the queue asks for: one clock, wide numbers of attempts, revocation at once.
--
-- The database's clock decides when leases end, when lots rest long enough and when a tournament
-- closes. The clocks of coordinators decide nothing: they may differ by hours.

-- All at once and in one order: a running coordinator waits for a moment, and none for each other.
LOCK TABLE tournaments, tokens, bots, editions, workers, worker_tokens, suspensions, lots, trials,
    match_audits, faults, progress IN ACCESS EXCLUSIVE MODE;

-- The time, for every statement that decides something. Tests replace this function.
CREATE FUNCTION database_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT clock_timestamp()';

-- Two moments in a row may come from two clocks, or from one that was set back in between.
-- A constraint on their order would keep an edition from ever becoming complete.
ALTER TABLE tournaments DROP CONSTRAINT time_goes_on;
ALTER TABLE tokens DROP CONSTRAINT tokens_check;
ALTER TABLE bots DROP CONSTRAINT bots_check;
ALTER TABLE bots DROP CONSTRAINT bots_check1;
ALTER TABLE editions DROP CONSTRAINT editions_check;
ALTER TABLE suspensions DROP CONSTRAINT suspensions_check;

-- Giving a lease back raises the number as well, and is free: 32 767 are too few. The tables are
-- written anew, which takes a second for a million lots; nothing is leased or reported meanwhile.
ALTER TABLE lots ALTER COLUMN attempt TYPE integer;
ALTER TABLE trials ALTER COLUMN attempt TYPE integer, ALTER COLUMN holder_attempt TYPE integer;
ALTER TABLE match_audits ALTER COLUMN attempt TYPE integer;
ALTER TABLE faults ALTER COLUMN attempt TYPE integer;

-- Programs of before read these columns as small numbers.
UPDATE compatibility SET oldest = 11;

-- A worker whose token was revoked reports nothing any more, from the commit that revokes it on. The
-- name belongs to the next token that uses it.
ALTER TABLE worker_tokens ADD COLUMN revoked boolean NOT NULL DEFAULT false;
UPDATE worker_tokens o SET revoked = true
FROM tokens t WHERE t.id = o.token AND t.revoked_at IS NOT NULL;
CREATE INDEX worker_tokens_revoked ON worker_tokens (worker) WHERE revoked;

-- Workers whose reports are refused.
CREATE VIEW barred_workers AS
    SELECT worker FROM suspensions WHERE reinstated_at IS NULL
    UNION ALL
    SELECT worker FROM worker_tokens WHERE revoked;

-- Of the counted matches those that were played for the edition and not taken over: until now they
-- were added up whenever someone asked how fast it is played.
ALTER TABLE progress ADD COLUMN played bigint NOT NULL DEFAULT 0 CHECK (played >= 0);
UPDATE progress AS p SET played = (
    SELECT coalesce(sum(l.count), 0) FROM lots l
    WHERE l.edition = p.edition AND l.state = 'counted' AND NOT l.taken)
FROM editions e WHERE e.id = p.edition AND e.state = 'running';
