-- Rehearsals: tournaments in which copies of the bots of another tournament play.

-- The name of the tournament that it rehearses. Null if it is no rehearsal. A coordinator of the
-- former version shows a rehearsal as a tournament whose entry has closed.
ALTER TABLE tournaments
    ADD COLUMN rehearsal_of text CHECK (length(rehearsal_of) BETWEEN 1 AND 64);

-- The page of a tournament lists its rehearsals.
CREATE INDEX tournaments_by_original ON tournaments (rehearsal_of) WHERE rehearsal_of IS NOT NULL;
