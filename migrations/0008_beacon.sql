-- Public beacons: values that others publish after entry has closed, and that the seed of a
-- tournament's last editions is keyed with.
--
-- Coordinators of the version before read `seed` for whatever they plan and hand out, so that is the
-- seed in force; the committed one moves into a column of its own when the value is given. They do
-- not know that editions from `beacon_from` on take over nothing from those before: give a beacon's
-- value when all coordinators are of this version.

ALTER TABLE tournaments
    -- What is awaited, as the tournament file names it: where and when it is published.
    ADD COLUMN beacon text CHECK (length(beacon) BETWEEN 1 AND 200),
    ADD COLUMN beacon_value text CHECK (length(beacon_value) BETWEEN 1 AND 1000),
    ADD COLUMN beacon_given_at timestamptz,
    -- The number of the first edition that is played with the seed keyed with the value.
    ADD COLUMN beacon_from integer CHECK (beacon_from >= 1),
    -- The seed whose hash was published at creation, once `seed` is the keyed one.
    ADD COLUMN committed_seed bytea CHECK (octet_length(committed_seed) = 32),
    ADD CONSTRAINT beacon_value_has_beacon CHECK (beacon IS NOT NULL OR beacon_value IS NULL),
    ADD CONSTRAINT beacon_value_is_complete CHECK (
        num_nonnulls(beacon_value, beacon_given_at, beacon_from, committed_seed) IN (0, 4)),
    ADD CONSTRAINT closed_tournament_has_beacon_value CHECK (
        state <> 'closed' OR beacon IS NULL OR beacon_value IS NOT NULL);

-- Whether two editions of a tournament, of which the first is the earlier one, have the same seed.
CREATE FUNCTION same_seed(earlier integer, later integer, beacon_from integer) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT beacon_from IS NULL OR later < beacon_from OR earlier >= beacon_from
$$;
