//! Generates Rust from the `.proto` files without `protoc`, and their descriptors for gRPC
//! reflection.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

/// The `.proto` files.
const FILES: [&str; 6] = [
    "arbiter/v1/audit.proto",
    "arbiter/v1/bot.proto",
    "arbiter/v1/ranking.proto",
    "arbiter/v1/token.proto",
    "arbiter/v1/tournament.proto",
    "arbiter/v1/worker.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=arbiter");
    let description = protox::compile(FILES, ["."])?;
    let to = PathBuf::from(env::var("OUT_DIR")?).join("description.bin");
    fs::write(to, description.encode_to_vec())?;
    tonic_prost_build::configure()
        .codec_path("crate::codec::BoundedCodec")
        // Boxed to save memory: few seats have evidence.
        .boxed(".arbiter.v1.SeatResult.evidence")
        .compile_fds(description)?;
    Ok(())
}
