-- How many lots of an edition are in each state, without counting them.

-- All at once: a running coordinator waits for a moment, and no change of a lot goes uncounted.
LOCK TABLE lots IN ACCESS EXCLUSIVE MODE;

-- What each statement that changed lots changed of their numbers. Their sums say how many there are;
-- the leader adds rows up now and then. Rows are only added, so that those who change lots at the same
-- time do not wait for each other.
CREATE TABLE lot_counts (
    edition integer NOT NULL,
    state lot_state NOT NULL,
    lots bigint NOT NULL,
    -- Matches in these lots.
    matches bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX lot_counts_of_edition ON lot_counts (edition, state);

INSERT INTO lot_counts
SELECT edition, state, count(*), sum(count) FROM lots GROUP BY edition, state;

CREATE FUNCTION count_added_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT edition, state, count(*), sum(count) FROM added GROUP BY edition, state;
    RETURN NULL;
END $$;
CREATE TRIGGER added_lots_are_counted AFTER INSERT ON lots
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_added_lots();

CREATE FUNCTION count_removed_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT edition, state, -count(*), -sum(count) FROM removed GROUP BY edition, state;
    RETURN NULL;
END $$;
CREATE TRIGGER removed_lots_are_counted AFTER DELETE ON lots
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed_lots();

CREATE FUNCTION count_changed_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT edition, state, sum(lots), sum(matches) FROM (
        SELECT edition, state, 1 AS lots, count AS matches FROM added
        UNION ALL SELECT edition, state, -1, -count FROM removed
    ) AS changed
    GROUP BY edition, state HAVING sum(lots) <> 0 OR sum(matches) <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER changed_lots_are_counted AFTER UPDATE ON lots
    REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_changed_lots();
