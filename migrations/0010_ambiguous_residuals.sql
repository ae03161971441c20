-- Whether another worker differs as much: one of the two is wrong, and which one cannot be said.
ALTER TABLE worker_residuals ADD COLUMN is_ambiguous boolean NOT NULL DEFAULT false;
