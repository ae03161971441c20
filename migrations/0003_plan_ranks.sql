-- Plans whose rounds depend on results, such as knockouts.

-- The rank of each entrant by the plan of its edition: how far it has come. Entrants that can still
-- come first have rank 1. Editions whose leaderboard follows from sums alone have no rows.
CREATE TABLE plan_ranks (
    edition integer NOT NULL,
    entrant integer NOT NULL,
    rank integer NOT NULL CHECK (rank >= 1),
    PRIMARY KEY (edition, entrant)
);
