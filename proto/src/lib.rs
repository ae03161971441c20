//! The protocol between coordinator, workers and clients, and the identities in it.
//!
//! The messages of [`v1`] are generated from `arbiter/v1/*.proto` and have no invariants: a number
//! may have any value. [`convert`] turns them into checked types, once, where they are received.

pub mod assignment;
mod client_calls;
pub mod codec;
pub mod convert;
pub mod edition_status;
pub mod fault;
mod forecast;
pub mod ids;
pub mod level;
pub mod limits;
mod metrics;
pub mod settings;
pub mod state_words;
pub mod trace;
pub mod trial;
pub mod tricks_http;

/// The generated messages and services of version 1.
pub mod v1 {
    #![allow(
        clippy::all,
        clippy::allow_attributes,
        clippy::pedantic,
        missing_debug_implementations,
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        reason = "generated"
    )]

    tonic::include_proto!("arbiter.v1");
}

/// The descriptors of the protocol for gRPC reflection: an encoded `FileDescriptorSet`.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/description.bin"));
