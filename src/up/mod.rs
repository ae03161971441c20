//! Runs a private Postgres, a coordinator and a worker on one machine.

pub(crate) mod data_dir;
pub(crate) mod services;
