-- The tables of Arbiter. docs/architecture.md explains the words.
--
-- There are three kinds of tables, because Postgres pays for changed rows long after the change:
-- plans (editions, entrants, matches, lot_order) hardly ever change; what was played (results,
-- records, faults) only grows; `lots` changes all the time, and is small and narrow. These tables
-- have no foreign keys and few triggers: a check for each of millions of rows costs more than the
-- row.
--
-- A match belongs to its tournament. It is stored when the first edition needs it, with the next
-- number of the tournament, and all later editions that need it share it. So an edition consists of
-- the matches before its end (`editions.end_match`), without those that are absent from it
-- (`absences`), and a new edition writes only what differs from the edition before.

----------------------------------------------------------------------------------------------------
-- The database itself
----------------------------------------------------------------------------------------------------

-- The oldest migration that a program must know to use these tables. A program refuses to start if
-- its own newest migration is older. A migration that removes something raises the number.
CREATE TABLE compatibility (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    oldest bigint NOT NULL
);
INSERT INTO compatibility (oldest) VALUES (1);

-- Which database this is. Lease numbers start again in another database; a worker with leases from
-- there must not report here.
CREATE TABLE installation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO installation DEFAULT VALUES;

-- The time for every statement that decides something by it: when leases end, how long lots rest,
-- when a tournament closes. Clocks of coordinators decide nothing; they may differ by hours.
-- Tests replace this function.
--
-- Two times in a row may come from two clocks, or from one that was set back in between. So no
-- constraint compares two times: it could keep an edition from ever becoming complete.
CREATE FUNCTION database_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT clock_timestamp()';

-- Refuses to change a row of a table of plans, results or history.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

----------------------------------------------------------------------------------------------------
-- Access: tokens and the audit log
----------------------------------------------------------------------------------------------------

CREATE TYPE role AS ENUM ('admin', 'organiser', 'player', 'worker');

CREATE TABLE tokens (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- BLAKE3 of the secret. The secret has 256 random bits, so a fast hash gives nothing away.
    hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    role role NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    -- The token is invalid from then on.
    expires_at timestamptz,
    -- When it was last used, to within some minutes.
    used_at timestamptz,
    -- The secret before the present one, and until when it is valid beside it.
    previous_hash bytea UNIQUE CHECK (octet_length(previous_hash) = 32),
    previous_valid_until timestamptz,
    -- The first secret, once there is another: proofs made with the first one stay valid.
    first_hash bytea CHECK (octet_length(first_hash) = 32),
    CONSTRAINT token_expires_after_creation CHECK (expires_at > created_at),
    CONSTRAINT previous_secret_has_end
        CHECK ((previous_hash IS NULL) = (previous_valid_until IS NULL)),
    CONSTRAINT previous_secret_has_first_secret
        CHECK (previous_hash IS NULL OR first_hash IS NOT NULL)
);

-- The token that a secret, given by its hash, belongs to at this time. Null if it is not valid.
CREATE FUNCTION find_token(secret bytea, at timestamptz) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT id FROM tokens
    WHERE hash = secret AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > at)
    UNION ALL
    SELECT id FROM tokens
    WHERE previous_hash = secret AND previous_valid_until > at
        AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > at)
    LIMIT 1
$$;

-- Who changed what: one row for each request that changes something. It can only grow.
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    token integer REFERENCES tokens,
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    subject text NOT NULL CHECK (length(subject) <= 256),
    detail jsonb
);
CREATE TRIGGER audit_log_is_immutable BEFORE UPDATE OR DELETE ON audit_log
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_is_never_truncated BEFORE TRUNCATE ON audit_log
    EXECUTE FUNCTION refuse_change();

----------------------------------------------------------------------------------------------------
-- Tournaments, bots and versions
----------------------------------------------------------------------------------------------------

CREATE TYPE tournament_state AS ENUM ('open', 'closed', 'cancelled');

CREATE TABLE tournaments (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$'),
    -- Any text: the program knows which games there are.
    game text NOT NULL CHECK (length(game) BETWEEN 1 AND 64),
    -- The tournament file without its seed.
    settings jsonb NOT NULL CHECK (jsonb_typeof(settings) = 'object'),
    -- All randomness comes from this seed. It is secret until the tournament is closed.
    seed bytea NOT NULL CHECK (octet_length(seed) = 32),
    -- Published at creation, so that everybody can check the seed later.
    seed_hash bytea NOT NULL CHECK (octet_length(seed_hash) = 32),
    state tournament_state NOT NULL DEFAULT 'open',
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- Why the last edition that was due could not be opened. Null if it was opened.
    last_error text CHECK (length(last_error) BETWEEN 1 AND 4000),
    -- A public beacon is a value that others publish after entry has closed. The seed of the last
    -- editions is keyed with it. This is its name in the tournament file: where and when it is
    -- published.
    beacon text CHECK (length(beacon) BETWEEN 1 AND 200),
    beacon_value text CHECK (length(beacon_value) BETWEEN 1 AND 1000),
    beacon_given_at timestamptz,
    -- The number of the first edition that is played with the keyed seed.
    beacon_from integer CHECK (beacon_from >= 1),
    -- The seed whose hash was published at creation, once `seed` is the keyed one.
    committed_seed bytea CHECK (octet_length(committed_seed) = 32),
    CONSTRAINT ended_tournament_has_end_time CHECK ((state = 'open') = (ended_at IS NULL)),
    CONSTRAINT beacon_value_has_beacon CHECK (beacon IS NOT NULL OR beacon_value IS NULL),
    CONSTRAINT beacon_value_is_complete CHECK (
        num_nonnulls(beacon_value, beacon_given_at, beacon_from, committed_seed) IN (0, 4)),
    CONSTRAINT closed_tournament_has_beacon_value CHECK (
        state <> 'closed' OR beacon IS NULL OR beacon_value IS NOT NULL)
);

-- Whether two editions of a tournament, the earlier one first, have the same seed.
CREATE FUNCTION same_seed(earlier integer, later integer, beacon_from integer) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT beacon_from IS NULL OR later < beacon_from OR earlier >= beacon_from
$$;

-- Tournaments with partitions have small ids, the others great ones (see below).
CREATE SEQUENCE shared_tournament_ids AS integer MINVALUE 1000000000 START WITH 1000000000;

-- Deleted tournaments. Their names are free again. Their rows are removed in the background, this
-- row last.
CREATE TABLE deleted_tournaments (
    tournament integer PRIMARY KEY REFERENCES tournaments,
    name text NOT NULL,
    at timestamptz NOT NULL
);

CREATE TABLE bots (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    -- Null for a house bot.
    owner integer REFERENCES tokens,
    name text NOT NULL CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$' AND name <> 'TIE'),
    created_at timestamptz NOT NULL,
    withdrawn_at timestamptz,
    -- The bot forfeited too often: versions up to this number no longer take part.
    stood_down_version integer,
    stood_down_at timestamptz,
    stood_down_reason text CHECK (length(stood_down_reason) BETWEEN 1 AND 256),
    -- An organiser reinstated it: versions up to this number are not stood down again.
    reinstated_version integer,
    UNIQUE (tournament, name),
    CONSTRAINT stood_down_has_reason CHECK (
        (stood_down_version IS NULL) = (stood_down_at IS NULL)
        AND (stood_down_version IS NULL) = (stood_down_reason IS NULL)
    )
);
-- For the limits of one owner.
CREATE INDEX bots_by_owner ON bots (owner) WHERE owner IS NOT NULL;

-- What was submitted or built. Equal bundles are stored once.
CREATE TABLE bundles (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    bytes bytea NOT NULL CHECK (octet_length(bytes) > 0)
);
-- Bundles arrive compressed.
ALTER TABLE bundles ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE versions (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot integer NOT NULL REFERENCES bots,
    number integer NOT NULL CHECK (number >= 1),
    digest bytea NOT NULL REFERENCES bundles,
    submitted_at timestamptz NOT NULL,
    UNIQUE (bot, number),
    UNIQUE (id, bot)
);
CREATE TRIGGER versions_are_immutable BEFORE UPDATE ON versions EXECUTE FUNCTION refuse_change();

----------------------------------------------------------------------------------------------------
-- Workers and trials
----------------------------------------------------------------------------------------------------

CREATE TABLE workers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
    -- What its sandbox can isolate, in the words of `arbiter doctor`.
    sandbox text NOT NULL,
    build text NOT NULL,
    -- How many matches it can play at the same time, as it last announced.
    slots integer NOT NULL DEFAULT 0 CHECK (slots >= 0),
    -- Number of streams that it has opened. The end of an older stream does not end the newest one.
    session integer NOT NULL DEFAULT 0,
    -- When it was last known to be connected.
    seen_at timestamptz NOT NULL
);

-- The token that a worker's name belongs to: the first one that used it. A worker without a row has
-- not connected yet; its name then belongs to the next token that uses it.
CREATE TABLE worker_tokens (
    worker integer PRIMARY KEY REFERENCES workers,
    token integer NOT NULL REFERENCES tokens,
    -- The token was revoked: reports of the worker are refused from that commit on, and the name
    -- belongs to the next token that uses it.
    revoked boolean NOT NULL DEFAULT false
);
CREATE INDEX worker_tokens_by_token ON worker_tokens (token);
CREATE INDEX worker_tokens_revoked ON worker_tokens (worker) WHERE revoked;

-- Workers that get no leases, and whose reports are refused.
CREATE TABLE suspensions (
    worker integer PRIMARY KEY REFERENCES workers,
    at timestamptz NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 4000),
    -- When an organiser reinstated it. Reports from before do not suspend it again.
    reinstated_at timestamptz
);

-- Workers whose reports are refused.
CREATE VIEW barred_workers AS
    SELECT worker FROM suspensions WHERE reinstated_at IS NULL
    UNION ALL
    SELECT worker FROM worker_tokens WHERE revoked;

CREATE TYPE trial_state AS ENUM (
    'waiting',
    'leased',     -- being built and tried
    'passed',     -- it has entered
    'failed',     -- through the bot's fault
    'aside'       -- too many faults, none of them the bot's: an organiser decides
);
-- Versions are built and tried on a worker before they enter. A version without a row entered at
-- once. Rows are leased as lots are.
CREATE TABLE trials (
    version integer PRIMARY KEY REFERENCES versions,
    state trial_state NOT NULL DEFAULT 'waiting',
    -- Number of leases. With the version it is the fencing token.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    deadline timestamptz,
    not_before timestamptz,
    -- The worker that reported it.
    worker integer REFERENCES workers,
    queued_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- Why it failed, or why the last attempt was a fault, in one line.
    verdict text CHECK (length(verdict) <= 4000),
    evidence text CHECK (length(evidence) <= 20000),
    -- The end of the output of its build.
    log text CHECK (length(log) <= 100000),
    figures jsonb CHECK (jsonb_typeof(figures) = 'object'),
    warnings text[],
    -- What was built. Null if the version runs as submitted.
    program bytea REFERENCES bundles,
    -- The worker that has it leased, and the attempt of that lease.
    holder integer REFERENCES workers,
    holder_attempt integer,
    CONSTRAINT leased_trial_has_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT ended_trial_has_end_time
        CHECK ((state IN ('passed', 'failed', 'aside')) = (ended_at IS NOT NULL)),
    CONSTRAINT failed_trial_has_verdict CHECK (state <> 'failed' OR verdict IS NOT NULL),
    CONSTRAINT only_passed_trial_has_program CHECK (program IS NULL OR state = 'passed'),
    CONSTRAINT trial_holder_has_attempt CHECK ((holder IS NULL) = (holder_attempt IS NULL))
);
CREATE INDEX trials_waiting ON trials (version) WHERE state = 'waiting';
CREATE INDEX trials_leased ON trials (deadline) WHERE state = 'leased';

----------------------------------------------------------------------------------------------------
-- Editions
----------------------------------------------------------------------------------------------------

-- Submissions and other reasons to open a new edition, until one is opened. Each is a row, so that
-- no submission waits for an edition that is being planned.
CREATE TABLE edition_triggers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    at timestamptz NOT NULL
);
CREATE INDEX edition_triggers_by_tournament ON edition_triggers (tournament);

CREATE TYPE edition_state AS ENUM ('planning', 'running', 'complete', 'cancelled');

CREATE TABLE editions (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    number integer NOT NULL CHECK (number >= 1),
    -- Numbers in the score of a seat.
    components smallint NOT NULL CHECK (components BETWEEN 1 AND 8),
    state edition_state NOT NULL DEFAULT 'planning',
    -- The first match that it added, and the number after the last one. Later matches belong to
    -- later editions.
    first_match bigint NOT NULL CHECK (first_match >= 0),
    end_match bigint NOT NULL,
    -- It has no match before this one, so that lists of its matches begin here.
    from_match bigint NOT NULL DEFAULT 0,
    -- How many matches it consists of until now: those that it added, and those that it shares with
    -- editions before.
    matches bigint NOT NULL DEFAULT 0 CHECK (matches >= 0),
    -- Whether results may add more matches (rounds of an episode).
    open_ended boolean NOT NULL DEFAULT false,
    -- The version of the rules.
    rules text NOT NULL CHECK (length(rules) BETWEEN 1 AND 64),
    -- How its participants changed, where plans are incremental: the first ones, and who joined and
    -- left since.
    plan_history jsonb CHECK (jsonb_typeof(plan_history) = 'object'),
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    UNIQUE (tournament, number),
    CONSTRAINT edition_ends_after_its_beginning CHECK (end_match >= first_match),
    CONSTRAINT ended_edition_has_end_time
        CHECK ((state IN ('complete', 'cancelled')) = (ended_at IS NOT NULL)),
    CONSTRAINT complete_edition_has_matches
        CHECK (state <> 'complete' OR (matches > 0 AND NOT open_ended))
);
-- One edition runs at a time: a submission meanwhile replaces it.
CREATE UNIQUE INDEX one_edition_runs ON editions (tournament) WHERE state = 'running';

-- The official leaderboard is that of the last complete edition, so one change of state moves it.
CREATE VIEW official_editions AS
    SELECT DISTINCT ON (tournament) * FROM editions
    WHERE state = 'complete' ORDER BY tournament, number DESC;

-- The fixed versions of an edition.
CREATE TABLE entrants (
    edition integer NOT NULL REFERENCES editions,
    -- Where it stands in the schedule, from 0.
    place integer NOT NULL CHECK (place >= 0),
    -- The bot and its program in all editions: the first version of the bot with this program.
    -- Another version with the same program plays the same matches.
    entrant integer NOT NULL,
    bot integer NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (edition, entrant),
    UNIQUE (edition, place),
    UNIQUE (edition, bot),
    FOREIGN KEY (version, bot) REFERENCES versions (id, bot)
);
-- A version is deleted with its tournament once no edition has it.
CREATE INDEX entrants_by_version ON entrants (version);
CREATE TRIGGER entrants_are_immutable BEFORE UPDATE ON entrants EXECUTE FUNCTION refuse_change();

-- W3C traceparents of versions until an edition shows them, and of editions until they are over.
-- There are rows only where traces are exported; deleting them deletes nothing else.
CREATE TABLE trace_contexts (
    subject text NOT NULL CHECK (subject IN ('version', 'edition')),
    id integer NOT NULL,
    parent text NOT NULL CHECK (length(parent) = 55),
    PRIMARY KEY (subject, id)
);

----------------------------------------------------------------------------------------------------
-- Matches and what was played, partitioned by tournament
----------------------------------------------------------------------------------------------------

-- The tables with a row for every match are partitioned by tournament, so that an old tournament is
-- deleted as a handful of tables, however large they are, and not row by row.
--
-- **Not too many**: a generic plan (`plan_cache_mode`) locks every partition each time it runs. So
-- only the first 32 tournaments at a time have partitions. The others share one (`…_shared`), and are
-- deleted row by row in the background. They have ids from 10^9 on.
--
-- **Not `lots`**: they are searched by deadline across all editions, are claimed within
-- microseconds, and have one narrow row for many matches. Like all other narrow tables they are
-- cleared row by row after a tournament was deleted.
--
-- **No default partition**: it would forbid `DETACH … CONCURRENTLY`, and every new partition would
-- wait for all writers.
--
-- **No foreign keys** between these tables: detaching a partition that others refer to checks them
-- all.

CREATE TABLE matches (
    -- Counted in the tournament, in the order in which editions added them.
    number bigint NOT NULL CHECK (number >= 0),
    -- Matches with the same key have the same seed.
    seed_key bigint NOT NULL CHECK (seed_key >= 0),
    tournament integer NOT NULL,
    -- Which of the tournament's boards, where there are several.
    board smallint CHECK (board >= 0),
    -- Entrants, seat 1 first.
    seats integer[] NOT NULL,
    -- For each seat the score that it brings from earlier matches of its episode, as part of the
    -- first number of its score. It is counted there already.
    carried bigint[] CHECK (cardinality(carried) = cardinality(seats)),
    -- For each seat the match whose bot state it starts with, or null if it starts without. The
    -- column is null where bot state does not pass from match to match.
    state_from bigint[],
    -- Parameters that differ from the tournament's.
    params jsonb CHECK (jsonb_typeof(params) = 'object'),
    PRIMARY KEY (tournament, number),
    CONSTRAINT state_comes_from_earlier_matches CHECK (
        state_from IS NULL OR (
            cardinality(state_from) = cardinality(seats)
            AND number > ALL (array_remove(state_from, NULL))
        )
    ),
    CONSTRAINT match_has_one_to_sixteen_seats CHECK (
        array_ndims(seats) = 1 AND array_lower(seats, 1) = 1 AND cardinality(seats) BETWEEN 1 AND 16
    ),
    -- Written out because a function would be called for each of millions of rows. Most have few
    -- seats.
    CONSTRAINT seats_have_different_entrants CHECK (
        array_position(seats, NULL) IS NULL
        AND 0 < ALL (seats)
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
    )
) PARTITION BY RANGE (tournament);
-- A new edition finds the matches that are stored already by their seed keys and seats, with an index
-- of each partition.
-- `state_from` changes when an unplayed match turns out to be one that is stored already.
CREATE TRIGGER matches_are_immutable
    BEFORE UPDATE OF number, seed_key, tournament, board, seats, carried, params ON matches
    EXECUTE FUNCTION refuse_change();

-- The match does not belong to the editions from `since` to `until` - 1, or to any from `since` on.
CREATE TABLE absences (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    since integer NOT NULL CHECK (since >= 2),
    until integer CHECK (until > since),
    PRIMARY KEY (tournament, number, since)
) PARTITION BY RANGE (tournament);

-- How much the machine of a worker isolates, in the words of `arbiter doctor`.
CREATE TYPE sandbox_level AS ENUM ('A', 'A''', 'A''''', 'B', 'C', 'D');

CREATE TABLE results (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    -- Wall-clock time of the match, in milliseconds.
    wall_ms integer NOT NULL CHECK (wall_ms >= 0),
    -- The scores of all seats in a row, seat 1 first.
    scores bigint[] NOT NULL CHECK (cardinality(scores) > 0),
    -- The sandbox it was played in.
    level sandbox_level NOT NULL,
    -- BLAKE3 of the dialogue.
    transcript bytea NOT NULL CHECK (octet_length(transcript) = 32),
    -- For each seat 0 (none), 1 (clock), 2 (illegal), 3 (gone) or 4 (flood). Null if no seat
    -- forfeited, which is the usual case.
    forfeits smallint[] CHECK (0 <= ALL (forfeits) AND 4 >= ALL (forfeits)),
    -- For each seat. Null if there were none.
    bad_answers integer[] CHECK (0 <= ALL (bad_answers)),
    -- Greater than any score: that of blackjack has 10^18 chips carried and at most 10^14 won.
    CONSTRAINT scores_are_bounded CHECK (
        2000000000000000000 >= ALL (scores) AND -2000000000000000000 <= ALL (scores)
    ),
    -- Each match counts once. The change of its lot's state in the same transaction ensures that;
    -- the key is there to make a mistake loud.
    PRIMARY KEY (tournament, number)
) PARTITION BY RANGE (tournament);
CREATE TRIGGER results_are_immutable BEFORE UPDATE ON results EXECUTE FUNCTION refuse_change();

-- Why a seat forfeited, or its first bad answer: for the owner of the bot.
CREATE TABLE evidence (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    seat smallint NOT NULL CHECK (seat BETWEEN 1 AND 16),
    -- Time of that answer, in microseconds.
    wall_us bigint NOT NULL CHECK (wall_us >= 0),
    cpu_us bigint NOT NULL CHECK (cpu_us >= 0),
    detail text NOT NULL,
    PRIMARY KEY (tournament, number, seat)
) PARTITION BY RANGE (tournament);
CREATE TRIGGER evidence_is_immutable BEFORE UPDATE ON evidence EXECUTE FUNCTION refuse_change();

-- Records of matches: here, or in an object store (`--records` of the coordinator). Each row says
-- where its record is, so both kinds exist side by side.
CREATE TABLE records (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    -- Compressed JSON Lines.
    bytes bytea CHECK (octet_length(bytes) > 0),
    -- The object that holds it, and where in it, in bytes.
    object bytea,
    start integer CHECK (start >= 0),
    length integer CHECK (length > 0),
    PRIMARY KEY (tournament, number),
    CONSTRAINT record_is_in_one_place CHECK (
        (bytes IS NULL) = (object IS NOT NULL)
        AND (object IS NULL) = (start IS NULL) AND (object IS NULL) = (length IS NULL)
    )
) PARTITION BY RANGE (tournament);
ALTER TABLE records ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TRIGGER records_are_immutable BEFORE UPDATE ON records EXECUTE FUNCTION refuse_change();

-- Objects of the object store: records of one tournament that were reported together, one after the
-- other. A row is written before its object and deleted after it, so no object is ever lost track of.
CREATE TABLE record_objects (
    id bytea PRIMARY KEY DEFAULT uuid_send(gen_random_uuid()) CHECK (octet_length(id) = 16),
    tournament integer NOT NULL,
    begun_at timestamptz NOT NULL,
    -- Whether records refer to it. An object that is begun and never used is deleted.
    used boolean NOT NULL DEFAULT false
);
CREATE INDEX record_objects_by_tournament ON record_objects (tournament);
CREATE INDEX record_objects_unused ON record_objects (begun_at) WHERE NOT used;

-- What bots keep in their directories between matches. Equal snapshots are stored once.
CREATE TABLE snapshots (
    -- BLAKE3 of the bytes.
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    -- A compressed tar archive.
    bytes bytea NOT NULL CHECK (octet_length(bytes) > 0)
);
ALTER TABLE snapshots ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TRIGGER snapshots_are_immutable BEFORE UPDATE ON snapshots EXECUTE FUNCTION refuse_change();

-- The snapshot of each seat at the end of a match. A seat that kept nothing has no row.
CREATE TABLE bot_state (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    seat smallint NOT NULL CHECK (seat BETWEEN 1 AND 16),
    digest bytea NOT NULL,
    PRIMARY KEY (tournament, number, seat)
) PARTITION BY RANGE (tournament);
-- A snapshot is deleted when no row names it any more.
CREATE INDEX bot_state_by_digest ON bot_state (digest);
CREATE TRIGGER bot_state_is_immutable BEFORE UPDATE ON bot_state EXECUTE FUNCTION refuse_change();

-- The digests of the snapshots with which the seats of a match start; null for a seat without. The
-- dialogue is a function of them.
CREATE FUNCTION initial_state(tournament integer, seats integer[], state_from bigint[])
RETURNS bytea[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(f.digest ORDER BY s.seat)
    FROM unnest($2, $3) WITH ORDINALITY AS s (entrant, before, seat)
    LEFT JOIN matches m ON m.tournament = $1 AND m.number = s.before
    LEFT JOIN bot_state f ON f.tournament = $1 AND f.number = s.before
        AND f.seat = array_position(m.seats, s.entrant)
$$;

-- The shared partitions.
CREATE TABLE matches_shared PARTITION OF matches FOR VALUES FROM (1000000000) TO (MAXVALUE);
CREATE INDEX matches_shared_by_seats
    ON matches_shared (tournament, hash_array_extended(seats, seed_key));
CREATE TABLE absences_shared PARTITION OF absences FOR VALUES FROM (1000000000) TO (MAXVALUE);
CREATE TABLE results_shared PARTITION OF results FOR VALUES FROM (1000000000) TO (MAXVALUE);
CREATE TABLE evidence_shared PARTITION OF evidence FOR VALUES FROM (1000000000) TO (MAXVALUE);
CREATE TABLE records_shared PARTITION OF records FOR VALUES FROM (1000000000) TO (MAXVALUE);
CREATE TABLE bot_state_shared PARTITION OF bot_state FOR VALUES FROM (1000000000) TO (MAXVALUE);

-- The tournaments with partitions.
CREATE TABLE partitions (
    tournament integer PRIMARY KEY REFERENCES tournaments
);

-- Gives a tournament its id. Ids are never used again, even after a tournament was deleted: late
-- reports may still name its lots.
CREATE FUNCTION assign_tournament_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM partitions) >= 32 THEN
        NEW.id := nextval('shared_tournament_ids');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tournaments_get_ids BEFORE INSERT ON tournaments
    FOR EACH ROW EXECUTE FUNCTION assign_tournament_id();

-- Creates the partitions of a tournament. A table that already exists when it is attached blocks no
-- reader or writer. The program creates the partition of `matches` with the first edition: an index
-- of millions of rows is built much faster than it grows.
CREATE FUNCTION create_partitions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whole text;
BEGIN
    IF NEW.id >= 1000000000 THEN
        RETURN NULL;
    END IF;
    FOREACH whole IN ARRAY ARRAY['absences', 'results', 'evidence', 'records', 'bot_state'] LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', whole || '_' || NEW.id, whole);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            whole, whole || '_' || NEW.id, NEW.id, NEW.id + 1);
    END LOOP;
    INSERT INTO partitions VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER tournaments_get_partitions AFTER INSERT ON tournaments
    FOR EACH ROW EXECUTE FUNCTION create_partitions();

----------------------------------------------------------------------------------------------------
-- The queue
----------------------------------------------------------------------------------------------------

CREATE TYPE lot_state AS ENUM (
    'blocked',         -- other lots come first
    'checking',        -- it may be a match that is stored already: what it begins with is compared
    'pending',         -- may be leased
    'leased',          -- being played
    'reported',        -- its results are stored
    'counted',         -- its results are in the standings, if the newest edition has its matches
    'delayed',         -- failed, and rests before it is retried
    'aside',           -- failed too often: an organiser decides
    'cancelled'        -- no edition needs it any more
);

-- Matches number … number + count - 1 of a tournament, leased together. The first match names the lot.
-- The queue holds the matches of the newest edition that were not played. A new edition cancels the
-- others, so a lot may become smaller, and a match may have no lot.
CREATE TABLE lots (
    number bigint NOT NULL CHECK (number >= 0),
    deadline timestamptz,
    not_before timestamptz,
    -- When it was reported.
    reported_at timestamptz,
    tournament integer NOT NULL,
    count integer NOT NULL CHECK (count BETWEEN 1 AND 4096),
    -- Expected playing time in milliseconds: the longest lots are leased first.
    expected_ms integer NOT NULL CHECK (expected_ms >= 0),
    -- The worker that has it leased, or that reported it.
    worker integer,
    state lot_state NOT NULL DEFAULT 'pending',
    -- Numbers in the scores of each of its matches: up to 16 seats with 8 components each.
    score_len smallint NOT NULL CHECK (score_len BETWEEN 1 AND 128),
    -- Number of lots that come first and are not reported yet.
    blockers smallint NOT NULL DEFAULT 0 CHECK (blockers >= 0),
    -- Number of leases, returned ones included. With the lot's number it is the fencing token.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    -- Whether other lots wait for this one.
    has_dependents boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tournament, number),
    CONSTRAINT leased_lot_has_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT delayed_lot_has_time CHECK ((state = 'delayed') = (not_before IS NOT NULL)),
    CONSTRAINT blocked_lot_has_blockers CHECK (
        CASE WHEN blockers > 0 THEN state IN ('blocked', 'cancelled') ELSE state <> 'blocked' END),
    CONSTRAINT played_lot_was_leased
        CHECK (attempt > 0 OR state NOT IN ('leased', 'reported', 'counted')),
    -- Lots that depend on each other hold one match, so a failure never makes several of them.
    CONSTRAINT dependent_lot_has_one_match
        CHECK (count = 1 OR (NOT has_dependents AND blockers = 0))
) WITH (
    -- Every lot is changed at least three times: leave room for that, and vacuum early.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX lots_pending ON lots (tournament, expected_ms DESC, number) WHERE state = 'pending';
CREATE INDEX lots_checking ON lots (tournament, number) WHERE state = 'checking';
CREATE INDEX lots_leased ON lots (deadline) WHERE state = 'leased';
CREATE INDEX lots_reported ON lots (tournament, number) WHERE state = 'reported';
CREATE INDEX lots_delayed ON lots (not_before) WHERE state = 'delayed';
CREATE INDEX lots_aside ON lots (tournament, number) WHERE state = 'aside';

-- `after` can be leased when all its `before` are reported.
CREATE TABLE lot_order (
    tournament integer NOT NULL,
    before bigint NOT NULL,
    after bigint NOT NULL,
    PRIMARY KEY (tournament, before, after),
    CONSTRAINT lot_order_has_no_cycle CHECK (before < after)
);
CREATE TRIGGER lot_order_is_immutable BEFORE UPDATE ON lot_order EXECUTE FUNCTION refuse_change();

-- How many lots of a tournament are in each state, without counting them: each row is what one
-- statement changed of these numbers, and their sums are the numbers. The leader adds rows up now and
-- then. Rows are only added, so that statements that change lots do not wait for each other.
CREATE TABLE lot_counts (
    tournament integer NOT NULL,
    state lot_state NOT NULL,
    lots bigint NOT NULL,
    -- Matches in these lots.
    matches bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX lot_counts_by_tournament ON lot_counts (tournament, state);

CREATE FUNCTION count_added_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT tournament, state, count(*), sum(count) FROM added GROUP BY tournament, state;
    RETURN NULL;
END $$;
CREATE TRIGGER added_lots_are_counted AFTER INSERT ON lots
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_added_lots();

CREATE FUNCTION count_removed_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT tournament, state, -count(*), -sum(count) FROM removed GROUP BY tournament, state;
    RETURN NULL;
END $$;
CREATE TRIGGER removed_lots_are_counted AFTER DELETE ON lots
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed_lots();

CREATE FUNCTION count_changed_lots() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lot_counts
    SELECT tournament, state, sum(lots), sum(matches) FROM (
        SELECT tournament, state, 1 AS lots, count AS matches FROM added
        UNION ALL SELECT tournament, state, -1, -count FROM removed
    ) AS changed
    GROUP BY tournament, state HAVING sum(lots) <> 0 OR sum(matches) <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER changed_lots_are_counted AFTER UPDATE ON lots
    REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_changed_lots();

-- Attempts that ended without results.
CREATE TABLE faults (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL,
    lot bigint NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 1),
    worker integer,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 4000),
    at timestamptz NOT NULL,
    -- Why the attempt failed, in one word. Null if unknown.
    kind text CHECK (length(kind) BETWEEN 1 AND 32),
    UNIQUE (tournament, lot, attempt)
);
CREATE TRIGGER faults_are_immutable BEFORE UPDATE ON faults EXECUTE FUNCTION refuse_change();

-- Matches that organisers declared void: they stay counted where they are counted already, and later
-- editions have another match in their place.
CREATE TABLE invalidated_matches (
    tournament integer NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    by integer REFERENCES tokens,
    reason text NOT NULL CHECK (length(reason) <= 4000),
    PRIMARY KEY (tournament, number)
);
CREATE TRIGGER invalidated_matches_are_immutable BEFORE UPDATE ON invalidated_matches
    EXECUTE FUNCTION refuse_change();

----------------------------------------------------------------------------------------------------
-- Leaderboards and progress
----------------------------------------------------------------------------------------------------

-- Sums over the counted matches of an entrant. They can be computed again from the results.
CREATE TABLE standings (
    edition integer NOT NULL,
    entrant integer NOT NULL,
    matches bigint NOT NULL CHECK (matches > 0),
    -- Exact whatever the game pays: chips can exceed a bigint.
    score numeric[] NOT NULL CHECK (cardinality(score) > 0),
    -- Sum of squares of the first number of the score, for the interval of its mean.
    squares numeric NOT NULL CHECK (squares >= 0),
    clock bigint NOT NULL CHECK (clock >= 0),
    illegal bigint NOT NULL CHECK (illegal >= 0),
    gone bigint NOT NULL CHECK (gone >= 0),
    flood bigint NOT NULL CHECK (flood >= 0),
    bad_answers bigint NOT NULL CHECK (bad_answers >= 0),
    PRIMARY KEY (edition, entrant),
    CONSTRAINT match_has_one_forfeit CHECK (clock + illegal + gone + flood <= matches)
) WITH (fillfactor = 50);

-- How many matches of an edition are in its standings. Apart from `editions`, whose rows are locked
-- whenever lots are leased.
CREATE TABLE progress (
    edition integer PRIMARY KEY,
    counted bigint NOT NULL CHECK (counted >= 0),
    -- Counted matches that were played while it was the newest edition.
    played bigint NOT NULL DEFAULT 0 CHECK (played >= 0)
);

-- How fast editions are played: how many of their matches were played and counted at two times, a
-- minute or more apart once the edition has run that long.
CREATE TABLE progress_samples (
    edition integer PRIMARY KEY,
    at timestamptz NOT NULL,
    played bigint NOT NULL CHECK (played >= 0),
    before_at timestamptz NOT NULL,
    before_played bigint NOT NULL CHECK (before_played >= 0)
);

----------------------------------------------------------------------------------------------------
-- Audits of workers. They never change a result.
----------------------------------------------------------------------------------------------------

CREATE TYPE audit_kind AS ENUM (
    'recount',    -- the record is replayed through the rules
    'shadow'      -- another worker plays the match again, and the transcripts are compared
);
CREATE TYPE audit_state AS ENUM (
    'waiting',
    'leased',       -- being played again
    'agreed',
    'disagreed',
    'unreadable',   -- the record cannot be read
    'absent',       -- there is no record
    'skipped'       -- cannot be done here: other rules, or too many faults
);

-- Rows are written when their match is counted, and change until the audit is over.
CREATE TABLE match_audits (
    number bigint NOT NULL,
    tournament integer NOT NULL,
    -- The worker that reported the match.
    worker integer NOT NULL,
    -- The worker that plays it again.
    second_worker integer,
    kind audit_kind NOT NULL,
    state audit_state NOT NULL DEFAULT 'waiting',
    -- Number of leases. With the match it is the fencing token.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    deadline timestamptz,
    -- When the first worker reported it.
    reported_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- What differs, or why the audit was skipped.
    reason text CHECK (length(reason) BETWEEN 1 AND 4000),
    PRIMARY KEY (tournament, number, kind),
    CONSTRAINT leased_audit_has_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT leased_audit_has_second_worker
        CHECK (state <> 'leased' OR second_worker IS NOT NULL),
    CONSTRAINT recount_has_no_second_worker CHECK (kind = 'shadow' OR second_worker IS NULL),
    CONSTRAINT second_worker_is_another CHECK (second_worker <> worker),
    CONSTRAINT ended_audit_has_end_time
        CHECK ((state IN ('waiting', 'leased')) = (ended_at IS NULL)),
    CONSTRAINT difference_has_reason CHECK (state <> 'disagreed' OR reason IS NOT NULL)
);
CREATE INDEX match_audits_waiting ON match_audits (kind, faults, tournament, number)
    WHERE state = 'waiting';
CREATE INDEX match_audits_leased ON match_audits (deadline) WHERE state = 'leased';
CREATE INDEX match_audits_by_worker ON match_audits (worker, kind, state);

-- How much the results of a worker in an edition differ from those of the others: computed once,
-- when the edition is complete.
CREATE TABLE worker_residuals (
    edition integer NOT NULL,
    worker integer NOT NULL,
    chi_square double precision NOT NULL CHECK (chi_square >= 0),
    p double precision NOT NULL CHECK (p BETWEEN 0 AND 1),
    -- Whether another worker differs as much: one of the two is wrong, and it is unknown which.
    is_ambiguous boolean NOT NULL DEFAULT false,
    PRIMARY KEY (edition, worker)
);
CREATE TABLE residual_checks (
    edition integer PRIMARY KEY,
    at timestamptz NOT NULL
);

----------------------------------------------------------------------------------------------------
-- Tricks over HTTP
----------------------------------------------------------------------------------------------------

-- The session of a token, which has one at a time. It ends with its last table, and stays until the
-- next one begins or its day is past.
CREATE TABLE tricks_sessions (
    token integer PRIMARY KEY REFERENCES tokens,
    -- Deals the tables. No other session has it.
    seed bytea NOT NULL CHECK (octet_length(seed) = 32),
    started_at timestamptz NOT NULL,
    -- Number of requests with cards that were answered. Of two at the same time one is refused.
    turn integer NOT NULL CHECK (turn >= 0),
    -- For each table the cards in the order in which they were played.
    played bytea[] NOT NULL CHECK (cardinality(played) BETWEEN 1 AND 200)
) WITH (fillfactor = 50);
CREATE INDEX tricks_sessions_started ON tricks_sessions (started_at);

-- Results of the finished sessions of a token.
CREATE TABLE tricks_records (
    token integer PRIMARY KEY REFERENCES tokens,
    sessions bigint NOT NULL CHECK (sessions > 0),
    -- The best result, and its number of tables.
    best integer NOT NULL,
    best_tables integer NOT NULL CHECK (best_tables BETWEEN 1 AND 200 AND abs(best) <= best_tables),
    -- The sum of all results.
    total bigint NOT NULL,
    victories bigint NOT NULL CHECK (victories BETWEEN 0 AND sessions),
    last_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The secret key with which victory tokens are made and checked.
CREATE TABLE tricks_key (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);
CREATE TRIGGER tricks_key_is_immutable BEFORE UPDATE ON tricks_key EXECUTE FUNCTION refuse_change();
