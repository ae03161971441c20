//! Writes archives that people download: zip archives, and compressed tar archives.
//!
//! This module only writes. A program that offers downloads, such as the coordinator, uses it
//! instead of the libraries, which could also unpack what others submit.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::{SimpleFileOptions, StreamWriter};

/// Files in a tar archive begin at multiples of this number of bytes.
pub const TAR_BLOCK: usize = 512;

/// Writes a zip archive to a stream, file by file. The bytes of a file are those that are written
/// after its [`ZipStream::begin`].
#[derive(Debug)]
pub struct ZipStream<W: Write>(ZipWriter<StreamWriter<W>>);

impl<W: Write> ZipStream<W> {
    /// An archive without files.
    pub fn new(out: W) -> Self {
        Self(ZipWriter::new_stream(out))
    }

    /// Begins a file with this path.
    ///
    /// # Errors
    /// If the stream fails, or the archive has a file with this path.
    pub fn begin(&mut self, path: &str) -> io::Result<()> {
        // Records shrink well at the lowest level, which takes the least processor time.
        let options = SimpleFileOptions::default().compression_level(Some(1));
        Ok(self.0.start_file(path, options)?)
    }

    /// Ends the archive and returns the stream.
    ///
    /// # Errors
    /// If the stream fails.
    pub fn finish(self) -> io::Result<W> {
        Ok(self.0.finish()?.into_inner())
    }
}

impl<W: Write> Write for ZipStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The header of a regular file in a tar archive. `mtime` is in seconds since 1970. Padding to
/// [`TAR_BLOCK`] follows the bytes of the file, and two empty blocks end the archive.
///
/// # Errors
/// If the path does not fit.
pub fn tar_header(path: &str, size: u64, mtime: u64) -> io::Result<[u8; TAR_BLOCK]> {
    let mut header = tar::Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(mtime);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// Compresses by gzip, in memory.
#[derive(Debug)]
pub struct GzipBuffer(GzEncoder<Vec<u8>>);

impl Default for GzipBuffer {
    fn default() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::default()))
    }
}

impl GzipBuffer {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("writing to memory does not fail");
    }

    /// Adds the end. No bytes can follow.
    pub fn finish(&mut self) {
        self.0.try_finish().expect("writing to memory does not fail");
    }

    /// The number of compressed bytes that can be taken.
    pub fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    /// Whether no compressed bytes can be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the compressed bytes so far.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }
}
