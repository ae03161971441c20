-- Names of bots that are their owners' own: `ada/mybot` is the bot `mybot` of the player with the
-- handle `ada`.

-- The first part of the names of its bots. No two tokens ever have the same, so a revoked token
-- keeps its handle. Null until the token needs one: only players do.
ALTER TABLE tokens ADD COLUMN handle text UNIQUE CHECK (handle ~ '^[a-z0-9-]{1,24}$');

-- The check and the index read all bots while they lock the table: under a second for 100 000.
ALTER TABLE bots DROP CONSTRAINT bots_name_check;
ALTER TABLE bots ADD CONSTRAINT bots_name_check CHECK (
    name ~ '^([a-z0-9-]{1,24}/)?[A-Za-z0-9._-]+$' AND length(name) <= 64 AND name <> 'TIE'
);
-- In matches a dot stands for the slash, because protocols allow none. Names differ there too.
CREATE UNIQUE INDEX bots_by_name_in_matches ON bots (tournament, replace(name, '/', '.'));
