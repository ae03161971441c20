-- Rehearsals: tournaments in which copies of the bots of another tournament play.

-- The name of the tournament that it rehearses. Null if it is no rehearsal. A coordinator of the
-- former version shows a rehearsal as a tournament whose entry has closed.
ALTER TABLE tournaments
    ADD COLUMN rehearsal_of text CHECK (length(rehearsal_of) BETWEEN 1 AND 64);

-- The page of a tournament lists its rehearsals.
CREATE INDEX tournaments_by_original ON tournaments (rehearsal_of) WHERE rehearsal_of IS NOT NULL;

-- A rehearsal is in the shared partitions. It is created in the transaction that plans its edition,
-- and new partitions would block the creation of other tournaments until then. It also leaves the
-- partitions to official tournaments.
CREATE OR REPLACE FUNCTION assign_tournament_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.rehearsal_of IS NOT NULL OR (SELECT count(*) FROM partitions) >= 32 THEN
        NEW.id := nextval('shared_tournament_ids');
    END IF;
    RETURN NEW;
END $$;
