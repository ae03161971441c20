//! Everything on one machine, in one process: a private Postgres, a coordinator and a worker.

pub(crate) mod data;
pub(crate) mod services;
