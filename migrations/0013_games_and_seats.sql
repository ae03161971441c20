-- A game is any text: which games there are, the program knows. A table has up to 16 seats.
--
-- The new constraints allow all that the former ones did, so versions before go on with them. To
-- add them, the tables are read once: about a second for each million matches, during which they
-- are locked.

ALTER TABLE tournaments DROP CONSTRAINT tournaments_game_check;
ALTER TABLE tournaments ADD CONSTRAINT tournaments_game_check CHECK (length(game) BETWEEN 1 AND 64);

ALTER TABLE matches DROP CONSTRAINT a_table_has_one_to_four_seats;
ALTER TABLE matches ADD CONSTRAINT a_table_has_one_to_sixteen_seats CHECK (
    array_ndims(seats) = 1 AND array_lower(seats, 1) = 1 AND cardinality(seats) BETWEEN 1 AND 16
);

-- Written out because a function would be called for each of millions of rows. Most have few seats.
ALTER TABLE matches DROP CONSTRAINT seats_are_taken_by_different_entrants;
ALTER TABLE matches ADD CONSTRAINT seats_are_taken_by_different_entrants CHECK (
    array_position(seats, NULL) IS NULL
    AND 0 <= ALL (seats)
    AND (cardinality(seats) < 2 OR seats[2] <> seats[1])
    AND (cardinality(seats) < 3 OR seats[3] <> ALL (seats[1:2]))
    AND (cardinality(seats) < 4 OR seats[4] <> ALL (seats[1:3]))
    AND (cardinality(seats) < 5 OR seats[5] <> ALL (seats[1:4])
        AND (cardinality(seats) < 6 OR seats[6] <> ALL (seats[1:5]))
        AND (cardinality(seats) < 7 OR seats[7] <> ALL (seats[1:6]))
        AND (cardinality(seats) < 8 OR seats[8] <> ALL (seats[1:7]))
        AND (cardinality(seats) < 9 OR seats[9] <> ALL (seats[1:8]))
        AND (cardinality(seats) < 10 OR seats[10] <> ALL (seats[1:9]))
        AND (cardinality(seats) < 11 OR seats[11] <> ALL (seats[1:10]))
        AND (cardinality(seats) < 12 OR seats[12] <> ALL (seats[1:11]))
        AND (cardinality(seats) < 13 OR seats[13] <> ALL (seats[1:12]))
        AND (cardinality(seats) < 14 OR seats[14] <> ALL (seats[1:13]))
        AND (cardinality(seats) < 15 OR seats[15] <> ALL (seats[1:14]))
        AND (cardinality(seats) < 16 OR seats[16] <> ALL (seats[1:15])))
);

-- 16 seats with 8 components each.
ALTER TABLE lots DROP CONSTRAINT lots_width_check;
ALTER TABLE lots ADD CONSTRAINT lots_width_check CHECK (width BETWEEN 1 AND 128);

ALTER TABLE evidence DROP CONSTRAINT evidence_seat_check;
ALTER TABLE evidence ADD CONSTRAINT evidence_seat_check CHECK (seat BETWEEN 1 AND 16);

ALTER TABLE files DROP CONSTRAINT files_seat_check;
ALTER TABLE files ADD CONSTRAINT files_seat_check CHECK (seat BETWEEN 1 AND 16);
