-- What organisers tell the public about a tournament, and who may see its replays.

-- A tournament of a former version keeps its replays to organisers and the owners of its bots.
ALTER TABLE tournaments
    -- One line for people.
    ADD COLUMN title text CHECK (length(title) BETWEEN 1 AND 100),
    -- Markdown.
    ADD COLUMN description text CHECK (octet_length(description) BETWEEN 1 AND 20000),
    -- When everybody may see the records of played matches.
    ADD COLUMN replays text NOT NULL DEFAULT 'never'
        CHECK (replays IN ('never', 'after_close', 'always'));

-- News of organisers about a tournament, numbered from 1. A removed one keeps its number.
CREATE TABLE announcements (
    tournament integer NOT NULL REFERENCES tournaments ON DELETE CASCADE,
    number integer NOT NULL CHECK (number >= 1),
    at timestamptz NOT NULL,
    -- Markdown.
    text text NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 2000),
    removed_at timestamptz,
    PRIMARY KEY (tournament, number)
);
