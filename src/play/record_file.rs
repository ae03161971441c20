//! Files of records: as they are (*.jsonl), or compressed (*.jsonl.zst) as pages of matches offer
//! them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;

use arbiter_replay::unpack_from;

/// The first bytes of a file in the Zstandard format.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file in a folder of records is one by its name.
pub(crate) fn is_record(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Opens a record and reads its text.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    text(File::open(path)?)
}

/// The text of a record that is at its beginning.
pub(crate) fn text(file: File) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::new(file);
    if file.fill_buf()?.starts_with(&ZSTD) {
        return Ok(Box::new(unpack_from(file)?));
    }
    Ok(Box::new(file))
}

/// A file with the text of a record: the same one, or a temporary one if it is compressed.
pub(crate) fn unpacked(mut file: File) -> io::Result<File> {
    let mut first = Vec::new();
    (&file).take(ZSTD.len() as u64).read_to_end(&mut first)?;
    file.rewind()?;
    if first != ZSTD {
        return Ok(file);
    }
    let mut unpacked = tempfile::tempfile()?;
    io::copy(&mut text(file)?, &mut unpacked)?;
    unpacked.rewind()?;
    Ok(unpacked)
}
