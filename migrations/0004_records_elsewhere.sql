-- Records may be kept outside of the database, in an object store (`--records` of the coordinator).
-- Each record knows where it is, so that both kinds live side by side.

-- Objects of that store: the records of one edition that were reported together, one after the other.
-- A row is there before its object, and goes after it, so that no object is ever forgotten.
CREATE TABLE packs (
    id bytea PRIMARY KEY DEFAULT uuid_send(gen_random_uuid()) CHECK (octet_length(id) = 16),
    edition integer NOT NULL,
    begun_at timestamptz NOT NULL,
    -- Whether records refer to it. One that is begun and never used is taken away.
    used boolean NOT NULL DEFAULT false
);
CREATE INDEX packs_of_edition ON packs (edition);
CREATE INDEX packs_unused ON packs (begun_at) WHERE NOT used;

-- However large it is.
SET LOCAL statement_timeout = 0;
ALTER TABLE records
    ALTER COLUMN bytes DROP NOT NULL,
    -- The object that holds it, and where in it, in bytes.
    ADD COLUMN pack bytea,
    ADD COLUMN start integer CHECK (start >= 0),
    ADD COLUMN length integer CHECK (length > 0),
    ADD CONSTRAINT a_record_is_in_one_place CHECK (
        (bytes IS NULL) = (pack IS NOT NULL)
        AND (pack IS NULL) = (start IS NULL) AND (pack IS NULL) = (length IS NULL)
    );
