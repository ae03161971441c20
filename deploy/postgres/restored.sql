-- Run these statements on a database that was restored from a backup, before a coordinator uses it.
-- Run them too after a recovery to a point in time, or when a standby that lacks commits has taken
-- over.

-- Lots were leased after the backup, and their numbers will be used again. The new id separates the
-- two: workers abandon their matches of the old id and set aside its reports.
UPDATE installation SET id = gen_random_uuid();

-- Lots that were leased at the time of the backup are never reported. They are played again if the
-- newest edition needs any of their matches.
UPDATE lots AS l SET deadline = NULL, state = CASE WHEN EXISTS (
    SELECT FROM matches m
    WHERE m.tournament = l.tournament AND m.number >= l.number AND m.number < l.number + l.count
      AND NOT EXISTS (
          SELECT FROM absences a
          WHERE a.tournament = m.tournament AND a.number = m.number AND a.until IS NULL)
) AND EXISTS (
    SELECT FROM editions e WHERE e.tournament = l.tournament AND e.state = 'running'
) THEN 'pending'::lot_state ELSE 'cancelled'::lot_state END
WHERE state = 'leased';
