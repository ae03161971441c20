//! What coordinator, workers and clients say to each other, and the identities they say it with.
//!
//! The messages of [`v1`] are generated from `arbiter/v1/*.proto` and know no rules: a number may
//! be anything. [`convert`] turns them into types that do, at the edge, once.

pub mod assignment;
pub mod codec;
pub mod convert;
pub mod fault;
pub mod ids;
pub mod level;
pub mod limits;
mod metrics;
pub mod settings;
pub mod trace;
pub mod trial;
pub mod tricks_http;

/// The first version of the protocol, as generated.
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

/// The description of the protocol, for gRPC reflection: an encoded `FileDescriptorSet`.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/description.bin"));
