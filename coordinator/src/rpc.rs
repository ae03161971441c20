//! What workers and clients call: the gRPC services `arbiter.v1`, translated to the use cases of
//! [`crate::service`].
//!
//! Who calls is found out once, before a message is read (`admission`); a use case refuses a caller
//! whose role is not enough.

mod admission;
mod clients;
pub mod codec;
mod revocation;
mod serve;
mod status;
mod worker;

pub use serve::{ServeError, Server, Tls};
