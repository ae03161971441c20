-- The tables with a row for every match are cut up by tournament, so that an old tournament is
-- dropped as a handful of tables, however large they are, and not row by row.
--
-- **By tournament, not by edition**: a tournament that is played again after every submission has
-- hundreds of editions, and a plan that is kept for any edition (`plan_cache_mode`) locks every
-- partition there is each time it runs. What is dropped is a tournament.
--
-- **By ranges of editions' ids**: every statement and every key names the edition already, so none
-- has to change, and programs of the version before go on without knowing. A tournament gets a
-- *shelf* when it is made: a thousand ids, and a partition for them of each of the tables. Its
-- editions take their ids from it, one after the other, by a trigger.
--
-- **Not too many**: for the sake of those locks only the first 32 tournaments at a time have a shelf.
-- The others share one (`…_common`), and are dropped row by row in the background. A tournament that
-- began there stays there, since a later edition has the greater id.
--
-- **Not `lots`**: the one table that changes all the time is asked by deadline across all editions,
-- its claims are measured in microseconds, and it has one narrow row for many matches. Like
-- everything else that is narrow it is cleared row by row after a tournament was dropped.
--
-- **No default partition**, which would forbid `DETACH … CONCURRENTLY` and have every new shelf wait
-- for whoever writes. What was there before this migration is a partition as it is (`…_before`): no row
-- is moved, the tables are read once.
--
-- **No foreign keys** between these tables, as before: a key that is looked up for each of millions of
-- rows costs more than the row, and detaching a partition that others refer to checks them all.

-- Tables of later migrations that a running program need not know: it refuses to start if its own
-- newest migration is older than this. A migration that takes something away raises the number.
CREATE TABLE compatibility (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    oldest bigint NOT NULL
);
INSERT INTO compatibility (oldest) VALUES (1);

-- Nobody adds an edition meanwhile, and nobody reads or writes what is cut up.
LOCK TABLE tournaments, editions IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE results, records, files, evidence, matches IN ACCESS EXCLUSIVE MODE;
-- Tables are read once, however large they are.
SET LOCAL statement_timeout = 0;

-- Ranges of editions' ids that belong to a tournament, with partitions of their own.
CREATE TABLE shelves (
    first integer PRIMARY KEY CHECK (first >= 0),
    past integer NOT NULL,
    tournament integer NOT NULL REFERENCES tournaments,
    CONSTRAINT a_shelf_has_room CHECK (past > first)
);
CREATE INDEX shelves_of_tournament ON shelves (tournament);
-- Never the same again, even after a tournament was dropped: reports may still name its lots.
CREATE SEQUENCE shelf_numbers AS integer MINVALUE 0 START WITH 0 MAXVALUE 1999999;
-- The ids of editions without a shelf.
CREATE SEQUENCE common_editions AS integer MINVALUE 2000000000 START WITH 2000000000;

-- Tournaments that are gone for everybody; what is left of them is cleared in the background, this
-- row last. Their names are free again.
CREATE TABLE dropped (
    tournament integer PRIMARY KEY REFERENCES tournaments,
    name text NOT NULL,
    at timestamptz NOT NULL
);

-- Versions go with their tournament: it is looked up that no edition has them.
CREATE INDEX entrants_of_version ON entrants (version);

CREATE FUNCTION cut_up(whole text, past integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    before text := whole || '_before';
BEGIN
    EXECUTE format('ALTER TABLE %I RENAME TO %I', whole, before);
    EXECUTE format('ALTER INDEX %I RENAME TO %I', whole || '_pkey', before || '_pkey');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) PARTITION BY RANGE (edition)',
        whole, before);
    -- Also an empty one: editions that run already go on to write into it.
    IF past > 0 THEN
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)',
            whole, before, past);
    ELSE
        EXECUTE format('DROP TABLE %I', before);
    END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (2000000000) TO (MAXVALUE)',
        whole || '_common', whole);
END $$;

DROP TRIGGER matches_stay ON matches;
DROP TRIGGER results_stay ON results;
DROP TRIGGER evidence_stays ON evidence;
DROP TRIGGER records_stay ON records;
DROP TRIGGER files_stay ON files;
ALTER INDEX matches_in_chains RENAME TO matches_before_in_chains;
-- What bots left is thrown away when no match names it any more.
CREATE INDEX files_before_by_digest ON files (digest);

SELECT setval('shelf_numbers', coalesce(max(id) / 1000 + 1, 0), false) FROM editions;
SELECT cut_up(whole, coalesce(past, 0))
FROM unnest(ARRAY['matches', 'results', 'evidence', 'records', 'files']) AS whole,
    (SELECT (max(id) / 1000 + 1) * 1000 AS past FROM editions) AS ids;
DROP FUNCTION cut_up;

ALTER INDEX matches_deal_idx RENAME TO matches_in_chains;
ALTER INDEX files_digest_idx RENAME TO files_by_digest;
CREATE TRIGGER matches_stay BEFORE UPDATE ON matches EXECUTE FUNCTION refuse_change();
CREATE TRIGGER results_stay BEFORE UPDATE ON results EXECUTE FUNCTION refuse_change();
CREATE TRIGGER evidence_stays BEFORE UPDATE ON evidence EXECUTE FUNCTION refuse_change();
CREATE TRIGGER records_stay BEFORE UPDATE ON records EXECUTE FUNCTION refuse_change();
CREATE TRIGGER files_stay BEFORE UPDATE ON files EXECUTE FUNCTION refuse_change();

-- Gives a tournament a shelf, and returns its first id. A table that is attached when it is made
-- already holds up nobody who reads or writes.
CREATE FUNCTION make_shelf(of_tournament integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    first integer := nextval('shelf_numbers') * 1000;
    whole text;
BEGIN
    FOREACH whole IN ARRAY ARRAY['matches', 'results', 'evidence', 'records', 'files'] LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', whole || '_' || first, whole);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            whole, whole || '_' || first, first, first + 1000);
    END LOOP;
    INSERT INTO shelves VALUES (first, first + 1000, of_tournament);
    RETURN first;
END $$;

CREATE FUNCTION give_shelf() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM shelves) < 32 THEN
        PERFORM make_shelf(NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tournaments_get_a_shelf AFTER INSERT ON tournaments
    FOR EACH ROW EXECUTE FUNCTION give_shelf();

-- Gives an edition the next id of its tournament's shelf, or of a new one if that is full.
CREATE FUNCTION place_edition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    shelf shelves;
BEGIN
    SELECT * INTO shelf FROM shelves s WHERE s.tournament = NEW.tournament
    ORDER BY s.first DESC LIMIT 1;
    IF NOT FOUND THEN
        NEW.id := nextval('common_editions');
        RETURN NEW;
    END IF;
    -- Leases of edition 0 are those of trials.
    SELECT greatest(max(e.id) + 1, shelf.first, 1) INTO NEW.id
    FROM editions e WHERE e.tournament = NEW.tournament;
    IF NEW.id >= shelf.past THEN
        NEW.id := make_shelf(NEW.tournament);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER editions_are_placed BEFORE INSERT ON editions
    FOR EACH ROW EXECUTE FUNCTION place_edition();

SELECT make_shelf(id) FROM (
    SELECT id FROM tournaments WHERE state = 'open' ORDER BY id DESC LIMIT 32
) AS open;
