-- A user who may see how long the queue is, for an autoscaler. With psql, as the database's owner:
--
--   psql "$ARBITER_DATABASE_URL" -v password=… -f deploy/postgres/watcher.sql
CREATE ROLE arbiter_watcher LOGIN PASSWORD :'password' CONNECTION LIMIT 4;
GRANT SELECT (state, edition) ON lots TO arbiter_watcher;
GRANT SELECT (id, state) ON editions TO arbiter_watcher;
GRANT SELECT (version, state) ON trials TO arbiter_watcher;
GRANT SELECT (id, bot) ON versions TO arbiter_watcher;
GRANT SELECT (id, tournament, withdrawn_at) ON bots TO arbiter_watcher;
GRANT SELECT (id, state) ON tournaments TO arbiter_watcher;
