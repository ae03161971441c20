//! Decompression of records, which are stored and sent in the Zstandard format.
//!
//! Untrusted workers compress the records. A few bytes can decompress to more than a disk holds, or
//! need a large amount of memory. So the reader limits both.

use std::io::{self, BufRead, BufReader, Read};

/// Maximum length of a line, in bytes. A reply or the end of a standard error has at most 64 KiB,
/// and a byte needs at most six characters of JSON.
pub const MAX_LINE: u64 = 1 << 20;

/// Maximum size of an uncompressed record, in bytes. Four bots write at most 16 MiB each, a byte
/// needs at most six characters of JSON, and the messages to the bots are shorter.
pub const MAX_RECORD: u64 = 1 << 30;

/// Maximum size of the decompression window, as a power of two in bytes. Workers compress with
/// windows of 512 KiB (2^19); those of earlier versions have 2 MiB.
pub const MAX_WINDOW_LOG: u32 = 23;

/// The size of the buffer of decompressed bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// Reads a record of at most [`MAX_RECORD`] bytes.
#[derive(Debug)]
struct Bounded<R> {
    inner: R,
    /// The number of bytes that may still be read.
    remaining: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let remaining = self.remaining.checked_sub(count as u64);
        self.remaining = remaining.ok_or_else(|| {
            let mib = MAX_RECORD >> 20;
            let error =
                format!("more than {mib} MiB uncompressed, which is too large for a record");
            io::Error::new(io::ErrorKind::FileTooLarge, error)
        })?;
        Ok(count)
    }
}

/// Decompresses a record. [`MAX_WINDOW_LOG`] limits the memory.
///
/// # Errors
/// If the decompressor cannot be created. Reading fails if the bytes are not Zstandard, need a
/// larger window, or hold more than [`MAX_RECORD`] bytes.
pub fn unpack(packed: &[u8]) -> io::Result<impl BufRead + '_> {
    unpack_from(packed)
}

/// Decompresses a record from a reader, like [`unpack`].
///
/// # Errors
/// Like [`unpack`].
pub fn unpack_from<R: BufRead>(packed: R) -> io::Result<impl BufRead + use<R>> {
    let mut inner = zstd::Decoder::with_buffer(packed)?;
    inner.window_log_max(MAX_WINDOW_LOG)?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, Bounded { inner, remaining: MAX_RECORD }))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn decompression_bombs_are_errors() {
        // More than a gibibyte of zeros in 17 small frames.
        let part = zstd::encode_all(&vec![0; 64 << 20][..], 1).unwrap();
        let bomb = part.repeat(17);
        assert!(bomb.len() < 1 << 20);
        let mut text = unpack(&bomb).unwrap();
        let error = io::copy(&mut text, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("1024 MiB"), "{error}");
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
        let large_window = encoder.finish().unwrap();
        let error = io::copy(&mut unpack(&large_window).unwrap(), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
        let text = b"{}\n".repeat(1 << 20);
        let packed = zstd::encode_all(&text[..], 3).unwrap();
        let mut unpacked = Vec::new();
        unpack(&packed).unwrap().read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == text);
    }
}
