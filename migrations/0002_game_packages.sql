-- Game packages: games that organisers bring.

-- The packages of a tournament, packed: the present one, and those of earlier editions.
CREATE TABLE tournament_packages (
    tournament integer NOT NULL REFERENCES tournaments ON DELETE CASCADE,
    bundle bytea NOT NULL REFERENCES bundles,
    PRIMARY KEY (tournament, bundle)
);
CREATE INDEX tournament_packages_by_bundle ON tournament_packages (bundle);

-- The settings of editions that were opened before the package of their tournament was replaced.
-- Other editions have the settings of their tournament.
CREATE TABLE edition_settings (
    edition integer PRIMARY KEY REFERENCES editions ON DELETE CASCADE,
    settings jsonb NOT NULL CHECK (jsonb_typeof(settings) = 'object')
);
