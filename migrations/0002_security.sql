-- Tokens whose secret changes and that end by themselves; a log that cannot be emptied.
--
-- Nothing that is there is changed, so coordinators of the version before live with it. They know
-- the present secret of a token alone, and no end of one: rotate tokens when all are of this version.

ALTER TABLE tokens
    -- From then on it lets nobody in.
    ADD COLUMN expires_at timestamptz,
    -- When it last let somebody in, to within some minutes.
    ADD COLUMN used_at timestamptz,
    -- The secret before the present one, and how long it lets in beside it.
    ADD COLUMN former_hash bytea UNIQUE CHECK (octet_length(former_hash) = 32),
    ADD COLUMN former_until timestamptz,
    -- The first secret, once there has been another: proofs that were made with it stay good.
    ADD COLUMN first_hash bytea CHECK (octet_length(first_hash) = 32),
    ADD CONSTRAINT time_goes_on CHECK (expires_at > created_at),
    ADD CONSTRAINT a_former_secret_has_its_end
        CHECK ((former_hash IS NULL) = (former_until IS NULL)),
    ADD CONSTRAINT what_has_a_former_secret_has_a_first_one
        CHECK (former_hash IS NULL OR first_hash IS NOT NULL);

-- Whom a secret lets in at this moment, by its hash.
CREATE FUNCTION token_of(secret bytea, at timestamptz) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT id FROM tokens
    WHERE hash = secret AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > at)
    UNION ALL
    SELECT id FROM tokens
    WHERE former_hash = secret AND former_until > at
        AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > at)
    LIMIT 1
$$;

CREATE TRIGGER audit_is_never_emptied BEFORE TRUNCATE ON audit EXECUTE FUNCTION refuse_change();
