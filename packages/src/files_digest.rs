//! The digest of files, which identifies a bot or the rules of a package.
//!
//! It is BLAKE3 over the files in the order of their paths. For each file: its path and its
//! contents, each after its length (eight bytes, little endian), and one byte: 0 for a file, 1 for
//! an executable file, 2 for a link, whose contents are its target.

use std::io::{self, Read};

/// The digest of the files so far.
#[derive(Clone, Debug, Default)]
pub struct FilesDigest(blake3::Hasher);

impl FilesDigest {
    /// Adds a file of `size` bytes.
    ///
    /// # Errors
    /// If its contents cannot be read.
    pub fn add_file(
        &mut self,
        path: &[u8],
        size: u64,
        is_executable: bool,
        contents: impl Read,
    ) -> io::Result<()> {
        self.add_part(path);
        self.0.update(&size.to_le_bytes());
        self.0.update_reader(contents.take(size))?;
        self.add_part(&[u8::from(is_executable)]);
        Ok(())
    }

    /// Adds a link.
    pub fn add_link(&mut self, path: &[u8], target: &[u8]) {
        self.add_part(path);
        self.add_part(target);
        self.add_part(&[2]);
    }

    fn add_part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The digest in hexadecimal.
    pub fn finish(&self) -> String {
        self.0.finalize().to_string()
    }
}
