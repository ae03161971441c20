-- Results that were reported for an edition when it was replaced, or later, are counted there, so
-- that they are chosen for audits like all others. They are found beside any number of results that
-- the same edition took over and that stay uncounted.
DROP INDEX lots_reported;
CREATE INDEX lots_reported ON lots (edition, taken, number) WHERE state = 'reported';
