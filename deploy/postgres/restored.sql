-- Run these statements on a database that was restored from a backup, before a coordinator uses it.
-- Run them too after a recovery to a point in time, or when a standby that lacks commits has taken
-- over.

-- Lots were leased after the backup, and their numbers will be used again. The new id separates the
-- two: workers abandon their matches of the old id and set aside its reports.
UPDATE installation SET id = gen_random_uuid();

-- Lots that were leased at the time of the backup are never reported.
UPDATE lots SET deadline = NULL, state = CASE
    WHEN edition IN (SELECT id FROM editions WHERE state = 'running') THEN 'pending'::lot_state
    ELSE 'cancelled'::lot_state
END
WHERE state = 'leased';
