//! Reads untrusted files with a size limit.
//!
//! A file in a bundle, a bot's directory or a build's output may be a FIFO without a writer, an
//! endless device, or larger than the memory of this machine. Arbiter reads all such files through
//! this module, which opens only regular files and reads no more than the caller's limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use arbiter_proto::limits::Bytes;
use rustix::fs::OFlags;

/// Opens a regular file for reading. Follows links.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a FIFO, socket, device or directory, without opening it;
/// otherwise the error of the system.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let irregular =
        || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file; put a file there");
    // Opening a device may have side effects.
    if !fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    // A FIFO may have replaced the file meanwhile. With this flag, opening a FIFO does not block.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if the file is larger, even if its reported size is smaller; and
/// the errors of [`open_regular`].
pub fn read_at_most(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || {
        let error = format!("larger than the limit of {}", Bytes(max));
        io::Error::new(io::ErrorKind::FileTooLarge, error)
    };
    let length = file.metadata()?.len();
    if length > max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a text file of at most `max` bytes.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the file is not UTF-8; and the errors of [`read_at_most`].
pub fn read_text_at_most(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(path, max)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// The real path of `name` in `directory`. Links must not lead outside.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the file does not exist, [`io::ErrorKind::InvalidInput`] if a
/// link leads outside.
pub fn within(directory: &Path, name: &str) -> io::Result<PathBuf> {
    // A dangling link exists, but is not a file.
    let metadata = fs::symlink_metadata(directory.join(name))?;
    let leads_out = || {
        let error = "this link does not lead to a file in the bot's directory; put the file there";
        io::Error::new(io::ErrorKind::InvalidInput, error)
    };
    let real = fs::canonicalize(directory.join(name));
    if !metadata.is_symlink() {
        return real;
    }
    let top = fs::canonicalize(directory)?;
    real.ok().filter(|real| real.starts_with(top)).ok_or_else(leads_out)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, [b'x'; 100]).unwrap();
        assert_eq!(read_text_at_most(&path, 100).unwrap().len(), 100);
        let error = read_at_most(&path, 64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("64 B"), "{error}");
        fs::write(&path, b"\xff").unwrap();
        let error = read_text_at_most(&path, 64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn devices_and_fifos_are_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&fifo, Path::new("/dev/zero"), Path::new("/dev/tty"), directory.path()] {
            let error = read_at_most(path, 64).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
        }
        // These report a size of 0.
        assert!(read_at_most(Path::new("/proc/self/smaps"), 64).is_err());
    }

    #[test]
    fn links_must_stay_inside() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("file"), "").unwrap();
        fs::write(directory.path().join("outside"), "").unwrap();
        symlink("file", inside.join("link")).unwrap();
        assert!(within(&inside, "link").unwrap().ends_with("inside/file"));
        assert_eq!(within(&inside, "gone").unwrap_err().kind(), io::ErrorKind::NotFound);
        for target in ["../outside", "/etc/passwd", "gone", "loop"] {
            symlink(target, inside.join("loop")).unwrap();
            let error = within(&inside, "loop").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{target}: {error}");
            fs::remove_file(inside.join("loop")).unwrap();
        }
    }
}
