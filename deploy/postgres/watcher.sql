-- Creates a user who may read only the length of the queue, for an autoscaler. Run it with psql as
-- the owner of the database:
--
--   psql "$ARBITER_DATABASE_URL" -v password=… -f deploy/postgres/watcher.sql
CREATE ROLE arbiter_watcher LOGIN PASSWORD :'password' CONNECTION LIMIT 4;
GRANT SELECT (state, tournament) ON lots TO arbiter_watcher;
GRANT SELECT (tournament, state) ON editions TO arbiter_watcher;
GRANT SELECT (version, state) ON trials TO arbiter_watcher;
GRANT SELECT (id, bot) ON versions TO arbiter_watcher;
GRANT SELECT (id, tournament, withdrawn_at) ON bots TO arbiter_watcher;
GRANT SELECT (id, state) ON tournaments TO arbiter_watcher;
