//! Everything on one machine, with one command: a private Postgres, a coordinator and a worker.

pub(crate) mod data;
pub(crate) mod services;
