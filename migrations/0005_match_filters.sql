-- Indexes for lists of matches: those of a bot, and those that were forfeited.
--
-- While an index is built nothing can be written to its table: to `matches` for about 1 s for each
-- million rows, so no edition is opened meanwhile; to `results` for about 0.2 s for each million
-- rows, so reports wait. Partitions that are attached later get the indexes with the attachment.

-- The matches of an entrant, whatever its seat. An entrant belongs to one tournament.
CREATE INDEX matches_by_entrant ON matches USING gin (seats);

-- The matches that a seat forfeited: few in most tournaments.
CREATE INDEX results_forfeited ON results (tournament, number) WHERE forfeits IS NOT NULL;
