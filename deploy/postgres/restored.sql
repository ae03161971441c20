-- What a database has to be told that was restored from a backup, before a coordinator starts on
-- it; also after a recovery to a point in time, or when a standby took over that had not had
-- everything.

-- Lots have been leased since the backup, and will be again under the same numbers. A new name
-- keeps the two apart: workers give up what they play under the old one, and set its reports aside.
UPDATE installation SET id = gen_random_uuid();

-- What was leased at the time of the backup is never reported.
UPDATE lots SET deadline = NULL, state = CASE
    WHEN edition IN (SELECT id FROM editions WHERE state = 'running') THEN 'pending'::lot_state
    ELSE 'cancelled'::lot_state
END
WHERE state = 'leased';
