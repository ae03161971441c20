//! Records as they are stored and sent: compressed by Zstandard.
//!
//! Workers compress them, and workers are not trusted: a few bytes could unpack to more than any
//! disk holds, or ask for any amount of memory. So reading has limits on both.

use std::io::{self, BufRead, BufReader, Read};

/// No line of a record is as long as this, in bytes: an answer or an end of standard error has at
/// most 64 KiB, and a byte takes at most six characters of JSON.
pub const LONGEST_LINE: u64 = 1 << 20;

/// The longest record, in bytes as it is read: four bots write at most 16 MiB each, a byte takes at
/// most six characters of JSON, and what they are told is less.
pub const LARGEST_RECORD: u64 = 1 << 30;

/// The logarithm of the most memory that unpacking may take, in bytes. Workers compress with
/// windows of 2 MiB (2^21).
pub const WINDOW: u32 = 23;

/// Reads a record of at most [`LARGEST_RECORD`] bytes.
#[derive(Debug)]
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| {
            let most = LARGEST_RECORD >> 20;
            let error = format!("larger than {most} MiB when it is unpacked: that is no record");
            io::Error::new(io::ErrorKind::FileTooLarge, error)
        })?;
        Ok(count)
    }
}

/// The text of a record that is compressed. Memory is bounded by [`WINDOW`].
///
/// # Errors
/// If the decompressor cannot be had. Reading fails where the bytes are not compressed so, ask for
/// more memory, or hold more than [`LARGEST_RECORD`] bytes.
pub fn unpack(packed: &[u8]) -> io::Result<impl BufRead + '_> {
    let mut inner = zstd::Decoder::with_buffer(packed)?;
    inner.window_log_max(WINDOW)?;
    Ok(BufReader::new(Bounded { inner, left: LARGEST_RECORD }))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn bombs_are_refused() {
        // A gibibyte of zeros in a few frames of some kilobytes.
        let part = zstd::encode_all(&vec![0; 64 << 20][..], 1).unwrap();
        let bomb = part.repeat(17);
        assert!(bomb.len() < 1 << 20);
        let mut text = unpack(&bomb).unwrap();
        let error = io::copy(&mut text, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("1024 MiB"), "{error}");
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
        let greedy = encoder.finish().unwrap();
        let error = io::copy(&mut unpack(&greedy).unwrap(), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
        let text = b"{}\n".repeat(1 << 20);
        let packed = zstd::encode_all(&text[..], 3).unwrap();
        let mut unpacked = Vec::new();
        unpack(&packed).unwrap().read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == text);
    }
}
