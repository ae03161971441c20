-- What bots find on the workers.

-- The interpreters and compilers of each worker, as it last announced them.
CREATE TABLE worker_runtimes (
    worker integer NOT NULL REFERENCES workers ON DELETE CASCADE,
    -- The name of the program, such as `python3`.
    program text NOT NULL CHECK (length(program) BETWEEN 1 AND 32),
    version text NOT NULL CHECK (length(version) BETWEEN 1 AND 32),
    PRIMARY KEY (worker, program)
);

-- Workers that lack a program of a version: another worker with this program tries the version.
CREATE TABLE trial_exclusions (
    version integer NOT NULL REFERENCES trials ON DELETE CASCADE,
    worker integer NOT NULL REFERENCES workers ON DELETE CASCADE,
    program text NOT NULL,
    PRIMARY KEY (version, worker)
);
