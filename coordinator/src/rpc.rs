//! The gRPC services `arbiter.v1` for workers and clients, on top of the use cases of
//! [`crate::service`].
//!
//! The caller is identified once, before a message is read (`admission`). A use case refuses a
//! caller whose role is not sufficient.

mod admission;
mod client_services;
pub mod decode;
mod revocation;
mod serve;
mod status;
mod worker;

pub use serve::{ServeError, Server, Tls};
