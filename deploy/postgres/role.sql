-- Gives the user the settings that the coordinator requests for each session. Needed only behind a
-- pooler that does not forward such requests. coordinator/src/db.rs explains each setting.
--
--   psql "$ARBITER_DATABASE_URL" -f deploy/postgres/role.sql
ALTER ROLE CURRENT_USER SET plan_cache_mode = 'force_generic_plan';
ALTER ROLE CURRENT_USER SET enable_seqscan = 'off';
ALTER ROLE CURRENT_USER SET enable_bitmapscan = 'off';
ALTER ROLE CURRENT_USER SET enable_hashjoin = 'off';
ALTER ROLE CURRENT_USER SET enable_mergejoin = 'off';
ALTER ROLE CURRENT_USER SET max_parallel_workers_per_gather = '0';
ALTER ROLE CURRENT_USER SET jit = 'off';
ALTER ROLE CURRENT_USER SET statement_timeout = '120s';
ALTER ROLE CURRENT_USER SET lock_timeout = '5s';
ALTER ROLE CURRENT_USER SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE CURRENT_USER SET tcp_keepalives_idle = '5s';
ALTER ROLE CURRENT_USER SET tcp_keepalives_interval = '5s';
ALTER ROLE CURRENT_USER SET tcp_user_timeout = '10s';
