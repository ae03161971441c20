-- The tables of Arbiter. Words mean what docs/architecture.md says they mean.
--
-- Three kinds of tables, kept apart because Postgres pays for changed rows long after the change:
-- plans (editions, entrants, matches, lot_order) are never changed; what was played (results,
-- records, faults) is only added to; `lots` alone is changed all the time, and is small and narrow.
-- No foreign key, trigger or wide column stands in the way of these.

CREATE TYPE tournament_state AS ENUM ('open', 'closed', 'cancelled');
CREATE TYPE edition_state AS ENUM ('planning', 'running', 'complete', 'cancelled');
CREATE TYPE lot_state AS ENUM (
    'blocked',    -- other lots come first
    'weighing',   -- it is looked up whether its matches were played already, or are being played
    'pending',    -- may be leased
    'leased',     -- being played
    'reported',   -- its results are stored
    'counted',    -- and are in the standings
    'delayed',    -- failed, and rests before it is tried again
    'split',      -- failed; its matches are tried one by one in lots of their own
    'aside',      -- failed too often: an organiser decides
    'cancelled'
);
-- How much a worker's machine isolates, as `arbiter doctor` says it.
CREATE TYPE sandbox_level AS ENUM ('A', 'A''', 'A''''', 'B', 'C', 'D');
CREATE TYPE role AS ENUM ('admin', 'organiser', 'player', 'worker');

-- Refuses to change a row of a table of plans, results or history.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

-- Which database this is. Leases are numbers that begin anew in another one; a worker that comes from
-- there must not report here.
CREATE TABLE identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO identity DEFAULT VALUES;

CREATE TABLE tournaments (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$'),
    game text NOT NULL CHECK (game IN ('wojna', 'bitwa', 'tricks', 'blackjack', 'gomoku')),
    -- The tournament file, its seed left out.
    settings jsonb NOT NULL CHECK (jsonb_typeof(settings) = 'object'),
    -- All chance comes from it: shown to nobody before the tournament is closed.
    seed bytea NOT NULL CHECK (octet_length(seed) = 32),
    -- Shown at creation, so that everybody can check the seed later.
    seed_hash bytea NOT NULL CHECK (octet_length(seed_hash) = 32),
    state tournament_state NOT NULL DEFAULT 'open',
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- Why no edition could be opened when the last one was due; nothing if it could.
    trouble text CHECK (length(trouble) BETWEEN 1 AND 4000),
    CONSTRAINT an_ended_tournament_has_its_time CHECK ((state = 'open') = (ended_at IS NULL)),
    CONSTRAINT time_goes_on CHECK (ended_at >= created_at)
);

CREATE TABLE tokens (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- BLAKE3 of the token. It has 256 random bits, so a fast hash gives nothing away.
    hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    role role NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL,
    revoked_at timestamptz CHECK (revoked_at >= created_at)
);

CREATE TABLE bots (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    -- Without an owner: a house bot.
    owner integer REFERENCES tokens,
    name text NOT NULL CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$' AND name <> 'TIE'),
    created_at timestamptz NOT NULL,
    withdrawn_at timestamptz CHECK (withdrawn_at >= created_at),
    -- It forfeited too much: none of its versions up to this one takes part any more.
    stood_down_version integer,
    stood_down_at timestamptz CHECK (stood_down_at >= created_at),
    stood_down_reason text CHECK (length(stood_down_reason) BETWEEN 1 AND 256),
    -- An organiser reinstated it: it is not stood down again for this version or one before.
    pardoned_version integer,
    UNIQUE (tournament, name),
    CONSTRAINT whoever_was_stood_down_was_told_why CHECK (
        (stood_down_version IS NULL) = (stood_down_at IS NULL)
        AND (stood_down_version IS NULL) = (stood_down_reason IS NULL)
    )
);
-- The bots of an owner: for what one owner may do.
CREATE INDEX bots_owned ON bots (owner) WHERE owner IS NOT NULL;

-- What was submitted, stored once however often it is.
CREATE TABLE bundles (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    bytes bytea NOT NULL CHECK (octet_length(bytes) > 0)
);
-- They arrive compressed.
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
CREATE TRIGGER versions_stay BEFORE UPDATE ON versions EXECUTE FUNCTION refuse_change();

-- Submissions and whatever else makes an edition due, until one is opened. They are rows of their
-- own so that nobody who changes something waits for an edition that is being planned.
CREATE TABLE changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    at timestamptz NOT NULL
);
CREATE INDEX changes_of_tournament ON changes (tournament);
CREATE TABLE workers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
    -- What its sandbox can isolate, as `arbiter doctor` says it.
    sandbox text NOT NULL,
    build text NOT NULL,
    -- How many matches it can play at the same time, as it said last.
    slots integer NOT NULL DEFAULT 0 CHECK (slots >= 0),
    -- Streams that it opened so far: the end of an older one says nothing of the newest.
    session integer NOT NULL DEFAULT 0,
    -- When it was last known to be connected.
    seen_at timestamptz NOT NULL
);

-- Versions are built and tried on a worker before they enter; one without a row here entered at
-- once. Rows are leased as lots are, and change as seldom as bots are submitted.
CREATE TYPE trial_state AS ENUM (
    'waiting',
    'leased',     -- being built and tried
    'passed',     -- it has entered
    'failed',     -- through a fault of its own
    'aside'       -- could not be tried too often, through no fault of its own: an organiser decides
);
CREATE TABLE trials (
    version integer PRIMARY KEY REFERENCES versions,
    state trial_state NOT NULL DEFAULT 'waiting',
    -- Leases so far. With the version it is the fencing token.
    attempt smallint NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    deadline timestamptz,
    not_before timestamptz,
    -- Who reported it.
    worker integer REFERENCES workers,
    queued_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- Why it failed, in one line; why it could not be tried the last time.
    verdict text CHECK (length(verdict) <= 4000),
    evidence text CHECK (length(evidence) <= 20000),
    -- The end of what its build wrote.
    log text CHECK (length(log) <= 100000),
    figures jsonb CHECK (jsonb_typeof(figures) = 'object'),
    warnings text[],
    -- What was built; nothing if it is run as it was submitted.
    program bytea REFERENCES bundles,
    CONSTRAINT a_leased_trial_has_a_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT an_ended_trial_has_its_time
        CHECK ((state IN ('passed', 'failed', 'aside')) = (ended_at IS NOT NULL)),
    CONSTRAINT who_fails_reads_why CHECK (state <> 'failed' OR verdict IS NOT NULL),
    CONSTRAINT only_what_passed_is_run CHECK (program IS NULL OR state = 'passed')
);
CREATE INDEX trials_waiting ON trials (version) WHERE state = 'waiting';
CREATE INDEX trials_leased ON trials (deadline) WHERE state = 'leased';

CREATE TABLE editions (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tournament integer NOT NULL REFERENCES tournaments,
    number integer NOT NULL CHECK (number >= 1),
    -- Numbers in a seat's score.
    components smallint NOT NULL CHECK (components BETWEEN 1 AND 8),
    state edition_state NOT NULL DEFAULT 'planning',
    -- Matches planned so far.
    matches bigint NOT NULL DEFAULT 0 CHECK (matches >= 0),
    -- Whether results may bring more matches (rounds of an episode).
    growing boolean NOT NULL DEFAULT false,
    -- The version of the rules it is played by.
    rules text NOT NULL CHECK (length(rules) BETWEEN 1 AND 64),
    -- Whether its lots are weighed before they are leased: files pass from match to match, and an
    -- earlier edition may have played the same matches from the same files.
    weighs boolean NOT NULL DEFAULT false,
    -- How its field came to be, where plans grow: who began, and who came and left since.
    lineage jsonb CHECK (jsonb_typeof(lineage) = 'object'),
    created_at timestamptz NOT NULL,
    ended_at timestamptz CHECK (ended_at >= created_at),
    UNIQUE (tournament, number),
    CONSTRAINT an_ended_edition_has_its_time
        CHECK ((state IN ('complete', 'cancelled')) = (ended_at IS NOT NULL)),
    CONSTRAINT a_complete_edition_has_its_matches
        CHECK (state <> 'complete' OR (matches > 0 AND NOT growing))
);
-- One runs at a time: a submission while it runs replaces it.
CREATE UNIQUE INDEX one_edition_runs ON editions (tournament) WHERE state = 'running';

-- The official leaderboard is that of the last complete edition, so one change of state moves it.
CREATE VIEW official AS
    SELECT DISTINCT ON (tournament) * FROM editions
    WHERE state = 'complete' ORDER BY tournament, number DESC;

-- The fixed versions of an edition, numbered from 0 as its schedule numbers them.
CREATE TABLE entrants (
    edition integer NOT NULL REFERENCES editions,
    entrant integer NOT NULL CHECK (entrant >= 0),
    bot integer NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (edition, entrant),
    UNIQUE (edition, bot),
    FOREIGN KEY (version, bot) REFERENCES versions (id, bot)
);
CREATE TRIGGER entrants_stay BEFORE UPDATE ON entrants EXECUTE FUNCTION refuse_change();

CREATE TABLE matches (
    number bigint NOT NULL CHECK (number >= 0),
    -- Matches with the same deal have the same seed.
    deal bigint NOT NULL CHECK (deal >= 0),
    edition integer NOT NULL,
    -- Which of the tournament's boards, where there are several.
    board smallint CHECK (board >= 0),
    -- Entrants, seat 1 first.
    seats integer[] NOT NULL,
    -- What each seat brings from earlier matches of its episode, as part of the first number of
    -- its score: counted there already.
    carried bigint[] CHECK (cardinality(carried) = cardinality(seats)),
    -- For each seat the match whose files it begins with; nothing if it begins without, and nothing
    -- at all where files do not pass from match to match.
    files_from bigint[],
    -- Parameters that differ from the tournament's.
    params jsonb CHECK (jsonb_typeof(params) = 'object'),
    PRIMARY KEY (edition, number),
    CONSTRAINT files_come_from_matches_before CHECK (
        files_from IS NULL OR (
            cardinality(files_from) = cardinality(seats)
            AND number > ALL (array_remove(files_from, NULL))
        )
    ),
    CONSTRAINT a_table_has_one_to_four_seats CHECK (
        array_ndims(seats) = 1 AND array_lower(seats, 1) = 1 AND cardinality(seats) BETWEEN 1 AND 4
    ),
    -- Written out because a function would be called for each of millions of rows.
    CONSTRAINT seats_are_taken_by_different_entrants CHECK (
        array_position(seats, NULL) IS NULL
        AND 0 <= ALL (seats)
        AND (cardinality(seats) < 2 OR seats[2] <> seats[1])
        AND (cardinality(seats) < 3 OR seats[3] <> ALL (seats[1:2]))
        AND (cardinality(seats) < 4 OR seats[4] <> ALL (seats[1:3]))
    )
);
CREATE TRIGGER matches_stay BEFORE UPDATE ON matches EXECUTE FUNCTION refuse_change();
-- Where files pass from match to match it turns out one by one which were played before.
CREATE INDEX matches_in_chains ON matches (deal) WHERE files_from IS NOT NULL;

-- Matches first … first + count - 1 of an edition, leased together.
CREATE TABLE lots (
    number bigint NOT NULL,
    first bigint NOT NULL CHECK (first >= 0),
    deadline timestamptz,
    not_before timestamptz,
    -- When it was reported.
    reported_at timestamptz,
    edition integer NOT NULL,
    count integer NOT NULL CHECK (count BETWEEN 1 AND 4096),
    -- Expected play in milliseconds: the longest lots are leased first.
    expected integer NOT NULL CHECK (expected >= 0),
    -- Who reported it.
    worker integer,
    state lot_state NOT NULL DEFAULT 'pending',
    -- Numbers in the scores of each of its matches: seats times components.
    width smallint NOT NULL CHECK (width BETWEEN 1 AND 32),
    -- Lots that come first and are not reported yet.
    waits smallint NOT NULL DEFAULT 0 CHECK (waits >= 0),
    -- Leases so far. With the lot's number it is the fencing token.
    attempt smallint NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    faults smallint NOT NULL DEFAULT 0 CHECK (faults >= 0),
    -- Whether other lots wait for this one.
    feeds boolean NOT NULL DEFAULT false,
    -- Whether its results were taken over from an earlier edition.
    taken boolean NOT NULL DEFAULT false,
    PRIMARY KEY (edition, number),
    CONSTRAINT a_lot_that_retries_one_match_is_named_after_it
        CHECK (number >= 0 OR (number = -1 - first AND count = 1)),
    CONSTRAINT a_leased_lot_has_a_deadline CHECK ((state = 'leased') = (deadline IS NOT NULL)),
    CONSTRAINT a_delayed_lot_has_its_time CHECK ((state = 'delayed') = (not_before IS NOT NULL)),
    CONSTRAINT a_blocked_lot_waits
        CHECK (CASE WHEN waits > 0 THEN state IN ('blocked', 'cancelled') ELSE state <> 'blocked' END),
    CONSTRAINT what_was_played_was_leased
        CHECK (attempt > 0 OR taken
            OR state IN ('blocked', 'weighing', 'pending', 'cancelled', 'delayed')),
    CONSTRAINT what_is_taken_over_has_results CHECK (NOT taken OR state IN ('reported', 'counted')),
    -- Lots that depend on each other hold one match, so that none of them is ever split.
    CONSTRAINT lots_in_order_are_single CHECK (count = 1 OR (NOT feeds AND waits = 0)),
    CONSTRAINT a_split_lot_had_several_matches CHECK (state <> 'split' OR count > 1)
) WITH (
    -- Every lot is changed at least three times: room for that, and early cleaning.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX lots_pending ON lots (edition, expected DESC, number) WHERE state = 'pending';
CREATE INDEX lots_weighing ON lots (edition, number) WHERE state = 'weighing';
CREATE INDEX lots_leased ON lots (deadline) WHERE state = 'leased';
CREATE INDEX lots_reported ON lots (edition, number) WHERE state = 'reported';
CREATE INDEX lots_delayed ON lots (not_before) WHERE state = 'delayed';
CREATE INDEX lots_aside ON lots (edition, number) WHERE state = 'aside';

-- `after` becomes leasable when all its `before` are reported.
CREATE TABLE lot_order (
    edition integer NOT NULL,
    before bigint NOT NULL,
    after bigint NOT NULL,
    PRIMARY KEY (edition, before, after),
    CONSTRAINT order_has_no_end_that_is_its_beginning CHECK (before < after)
);
CREATE TRIGGER lot_order_stays BEFORE UPDATE ON lot_order EXECUTE FUNCTION refuse_change();

CREATE TABLE results (
    number bigint NOT NULL,
    edition integer NOT NULL,
    -- How long the match took on the wall, in milliseconds.
    wall_ms integer NOT NULL CHECK (wall_ms >= 0),
    -- Every seat's score in a row, seat 1 first.
    scores bigint[] NOT NULL CHECK (cardinality(scores) > 0),
    -- The sandbox it was played in.
    level sandbox_level NOT NULL,
    -- BLAKE3 of what was said.
    transcript bytea NOT NULL CHECK (octet_length(transcript) = 32),
    -- For each seat 0 (none), 1 (clock), 2 (illegal), 3 (gone) or 4 (flood); nothing if nobody
    -- forfeited, which is the rule.
    forfeits smallint[] CHECK (0 <= ALL (forfeits) AND 4 >= ALL (forfeits)),
    -- For each seat; nothing if there were none.
    bad_answers integer[] CHECK (0 <= ALL (bad_answers)),
    -- The match of an earlier edition that it was taken over from: one that was played there.
    source_edition integer CHECK (source_edition < edition),
    source_number bigint,
    CONSTRAINT a_source_is_a_match CHECK ((source_edition IS NULL) = (source_number IS NULL)),
    -- Each match counts once. What ensures it is the change of its lot's state in the same
    -- transaction; the key is there to make a mistake loud.
    PRIMARY KEY (edition, number)
);
CREATE TRIGGER results_stay BEFORE UPDATE ON results EXECUTE FUNCTION refuse_change();

-- Matches whose results are void: they count where they are counted already, and no later edition
-- takes them over.
CREATE TABLE voids (
    edition integer NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    by integer REFERENCES tokens,
    reason text NOT NULL CHECK (length(reason) <= 4000),
    PRIMARY KEY (edition, number)
);
CREATE TRIGGER voids_stay BEFORE UPDATE ON voids EXECUTE FUNCTION refuse_change();

-- Matches that are the same as one which is still being played for an edition that was replaced:
-- their lots are weighed until that one is reported, or its lease ends.
CREATE TABLE awaited (
    number bigint NOT NULL,
    source_number bigint NOT NULL,
    source_lot bigint NOT NULL,
    edition integer NOT NULL,
    source_edition integer NOT NULL CHECK (source_edition < edition),
    PRIMARY KEY (edition, number)
);
CREATE TRIGGER awaited_stay BEFORE UPDATE ON awaited EXECUTE FUNCTION refuse_change();
-- Why a seat forfeited, or what its first bad answer was: for its owner.
CREATE TABLE evidence (
    number bigint NOT NULL,
    edition integer NOT NULL,
    seat smallint NOT NULL CHECK (seat BETWEEN 1 AND 4),
    -- What the answer took, in microseconds.
    wall_us bigint NOT NULL CHECK (wall_us >= 0),
    cpu_us bigint NOT NULL CHECK (cpu_us >= 0),
    detail text NOT NULL,
    PRIMARY KEY (edition, number, seat)
);
CREATE TRIGGER evidence_stays BEFORE UPDATE ON evidence EXECUTE FUNCTION refuse_change();

CREATE TABLE records (
    number bigint NOT NULL,
    edition integer NOT NULL,
    -- Compressed JSON Lines.
    bytes bytea NOT NULL CHECK (octet_length(bytes) > 0),
    PRIMARY KEY (edition, number)
);
ALTER TABLE records ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TRIGGER records_stay BEFORE UPDATE ON records EXECUTE FUNCTION refuse_change();

-- What bots left in their directories, each stored once however often it is left.
CREATE TABLE snapshots (
    -- BLAKE3 of the bytes.
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    -- A compressed tar archive.
    bytes bytea NOT NULL CHECK (octet_length(bytes) > 0)
);
ALTER TABLE snapshots ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TRIGGER snapshots_stay BEFORE UPDATE ON snapshots EXECUTE FUNCTION refuse_change();

-- Who left what in a match; nothing for those who left nothing.
CREATE TABLE files (
    number bigint NOT NULL,
    edition integer NOT NULL,
    seat smallint NOT NULL CHECK (seat BETWEEN 1 AND 4),
    digest bytea NOT NULL,
    PRIMARY KEY (edition, number, seat)
);
CREATE TRIGGER files_stay BEFORE UPDATE ON files EXECUTE FUNCTION refuse_change();

-- The files with which the seats of a match begin, as digests; nothing for those without. What is
-- said is a function of them.
CREATE FUNCTION beginnings(edition integer, seats integer[], files_from bigint[]) RETURNS bytea[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(f.digest ORDER BY s.seat)
    FROM unnest($2, $3) WITH ORDINALITY AS s (entrant, before, seat)
    LEFT JOIN matches m ON m.edition = $1 AND m.number = s.before
    LEFT JOIN files f ON f.edition = $1 AND f.number = s.before
        AND f.seat = array_position(m.seats, s.entrant)
$$;

-- Who sits there, in a form that can be compared between editions: bots, and what they play with.
CREATE FUNCTION players(edition integer, seats integer[]) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(e.bot || ' ' || encode(v.digest, 'hex') ORDER BY s.seat)
    FROM unnest($2) WITH ORDINALITY AS s (entrant, seat)
    JOIN entrants e ON e.edition = $1 AND e.entrant = s.entrant
    JOIN versions v ON v.id = e.version
$$;

-- Attempts that ended without results.
CREATE TABLE faults (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    edition integer NOT NULL,
    lot bigint NOT NULL,
    attempt smallint NOT NULL CHECK (attempt >= 1),
    worker integer,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 4000),
    at timestamptz NOT NULL,
    UNIQUE (edition, lot, attempt)
);
CREATE TRIGGER faults_stay BEFORE UPDATE ON faults EXECUTE FUNCTION refuse_change();

-- Sums over the counted matches of an entrant. They can be computed again from the results.
CREATE TABLE standings (
    edition integer NOT NULL,
    entrant integer NOT NULL CHECK (entrant >= 0),
    matches bigint NOT NULL CHECK (matches > 0),
    -- Exact whatever the game pays: chips can outgrow a bigint.
    score numeric[] NOT NULL CHECK (cardinality(score) > 0),
    -- Of the first number of the score, for the interval of its mean.
    squares numeric NOT NULL CHECK (squares >= 0),
    clock bigint NOT NULL CHECK (clock >= 0),
    illegal bigint NOT NULL CHECK (illegal >= 0),
    gone bigint NOT NULL CHECK (gone >= 0),
    flood bigint NOT NULL CHECK (flood >= 0),
    bad_answers bigint NOT NULL CHECK (bad_answers >= 0),
    PRIMARY KEY (edition, entrant),
    CONSTRAINT a_match_forfeits_once CHECK (clock + illegal + gone + flood <= matches)
) WITH (fillfactor = 50);

-- How many matches of an edition are in its standings; apart from `editions`, whose rows are locked
-- whenever lots are leased.
CREATE TABLE progress (
    edition integer PRIMARY KEY,
    counted bigint NOT NULL CHECK (counted >= 0)
);

-- How fast editions are played: how many of their matches had been played and counted at two
-- moments, a minute or more apart once it runs so long.
CREATE TABLE paces (
    edition integer PRIMARY KEY,
    at timestamptz NOT NULL,
    played bigint NOT NULL CHECK (played >= 0),
    before_at timestamptz NOT NULL,
    before_played bigint NOT NULL CHECK (before_played >= 0)
);

-- Who changed what: one line for each request that changes something.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    token integer REFERENCES tokens,
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    subject text NOT NULL CHECK (length(subject) <= 256),
    detail jsonb
);
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit EXECUTE FUNCTION refuse_change();

-- Tricks over HTTP: the session of a token, of which it has one at a time. It is over with its last
-- table, and stays until the next one begins or its day is past.
CREATE TABLE tricks_sessions (
    token integer PRIMARY KEY REFERENCES tokens,
    -- Deals the tables; no other session has it.
    seed bytea NOT NULL CHECK (octet_length(seed) = 32),
    started_at timestamptz NOT NULL,
    -- How many requests with cards were answered. Of two that come at once one is refused.
    turn integer NOT NULL CHECK (turn >= 0),
    -- For each table the cards in the order in which they were played.
    played bytea[] NOT NULL CHECK (cardinality(played) BETWEEN 1 AND 200)
) WITH (fillfactor = 50);
CREATE INDEX tricks_sessions_started ON tricks_sessions (started_at);

-- What the finished sessions of a token came to.
CREATE TABLE tricks_records (
    token integer PRIMARY KEY REFERENCES tokens,
    sessions bigint NOT NULL CHECK (sessions > 0),
    -- The best result, and of how many tables.
    best integer NOT NULL,
    best_tables integer NOT NULL CHECK (best_tables BETWEEN 1 AND 200 AND abs(best) <= best_tables),
    -- The sum of all results.
    total bigint NOT NULL,
    victories bigint NOT NULL CHECK (victories BETWEEN 0 AND sessions),
    last_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What victory tokens are made with and known by. Shown to nobody.
CREATE TABLE tricks_key (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);
CREATE TRIGGER tricks_key_stays BEFORE UPDATE ON tricks_key EXECUTE FUNCTION refuse_change();
