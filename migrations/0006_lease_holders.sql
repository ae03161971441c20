-- A lease knows which worker holds it, and a worker's name belongs to a token.
--
-- `lots.worker` is the worker that has the lot leased, or has reported it; until now it was written
-- by reports alone. Coordinators of the version before write NULL when they lease a lot: such a lease
-- has no known holder, and any worker may report it, as before.

-- The worker that a trial is leased to, and the attempt for which that is said. Coordinators of the
-- version before lease a trial without writing these columns, and the number tells that they are old.
ALTER TABLE trials
    ADD COLUMN holder integer REFERENCES workers,
    ADD COLUMN holder_attempt smallint,
    ADD CONSTRAINT trial_holder_has_attempt CHECK ((holder IS NULL) = (holder_attempt IS NULL));

-- Which token a worker's name belongs to: the first one that used it. A table of its own because
-- coordinators of the version before read `workers` with `*`. A worker without a row here has not
-- said hello since, and its name belongs to the next token that uses it.
CREATE TABLE worker_tokens (
    worker integer PRIMARY KEY REFERENCES workers,
    token integer NOT NULL REFERENCES tokens
);
CREATE INDEX worker_tokens_by_token ON worker_tokens (token);

-- No game has a score beyond this: the greatest is that of blackjack, 10^18 chips carried and at most
-- 10^14 won. Rows that are there already are not read.
ALTER TABLE results ADD CONSTRAINT scores_are_bounded CHECK (
    2000000000000000000 >= ALL (scores) AND -2000000000000000000 <= ALL (scores)
) NOT VALID;
