//! Small bundles that would need much memory: each is refused or unpacked in little memory. This
//! program starts itself as a child process with a limited address space, which unpacks them.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::env;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use arbiter_worker::bot::Bot;
use arbiter_worker::bundle;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// The limit of the child's address space, in KiB. The child uses a third of it at its start.
const MOST_MEMORY: u32 = 448 << 10;

/// The variable with the path of the child's archive.
const ARCHIVE: &str = "ARBITER_TEST_ARCHIVE";

/// The size of contents that do not fit into the child's memory, in MiB.
const MUCH: usize = 200;

const MANIFEST: &[u8] = b"name = \"small\"\nrun = [\"./run\"]\n";

/// Runs in the child: unpacks a bundle as a worker does after fetching it.
#[test]
fn child() {
    let Some(archive) = env::var_os(ARCHIVE) else { return };
    let bytes = fs::read(archive).unwrap();
    let to = tempfile::tempdir().unwrap();
    let unpacked = bundle::unpack(&bytes, to.path()).map_err(|error| error.to_string());
    let loaded = unpacked.and_then(|()| {
        Bot::unpacked(to.path(), blake3::hash(&bytes)).map_err(|error| error.to_string())
    });
    match loaded {
        Ok(bot) => println!("result: {} can play", bot.name),
        Err(why) => println!("result: {why}"),
    }
}

/// The result that a child with limited memory prints for an archive.
#[expect(clippy::disallowed_methods, reason = "it runs this program again, under a limit")]
fn result_of(archive: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), archive).unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MOST_MEMORY} && exec \"$0\" \"$@\"")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(ARCHIVE, file.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let message = stdout.lines().find_map(|line| line.split_once("result: "));
    let Some((_, message)) = message else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("{} bytes ended the process: {} {stdout} {stderr}", archive.len(), output.status);
    };
    message.to_owned()
}

/// A tar archive compressed by Zstandard or by gzip, of parts that may be repeated.
struct Parts {
    compress: fn(&[u8]) -> Vec<u8>,
    bytes: Vec<u8>,
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

impl Parts {
    fn new(compress: fn(&[u8]) -> Vec<u8>) -> Self {
        Self { compress, bytes: Vec::new() }
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        self.repeated(bytes, 1)
    }

    /// The same bytes, repeated `times` times.
    fn repeated(mut self, bytes: &[u8], times: usize) -> Self {
        self.bytes.extend((self.compress)(bytes).repeat(times));
        self
    }

    fn header(self, kind: EntryType, path: &str, size: usize) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(size as u64);
        header.set_cksum();
        self.bytes(header.as_bytes())
    }

    /// An entry of [`MUCH`] mebibytes that starts with these bytes.
    fn long(self, kind: EntryType, path: &str, front: &[u8], part: &[u8]) -> Self {
        assert_eq!(part.len(), 1 << 20);
        let entry = self.header(kind, path, MUCH << 20);
        let first: Vec<_> = front.iter().chain(part).copied().take(1 << 20).collect();
        entry.bytes(&first).repeated(part, MUCH - 1)
    }

    /// A valid bot, and the end of the archive.
    fn small_bot(self, directory: &str) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, contents) in [("bot.toml", MANIFEST), ("run", b"#!/bin/sh\n")] {
            let mut header = Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(contents.len() as u64);
            builder.append_data(&mut header, format!("{directory}{name}"), contents).unwrap();
        }
        self.bytes(&builder.into_inner().unwrap()).bytes
    }
}

/// A mebibyte that compresses too little to count as a bomb.
fn part(line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::new();
    // The repeated part is smaller than the window of gzip.
    for number in (0..2000).cycle() {
        text += &line(number);
        if text.len() >= 1 << 20 {
            break;
        }
    }
    text.into_bytes()[..1 << 20].to_vec()
}

#[test]
fn large_manifests_are_refused() {
    let toml = part(|number| format!("k = [[[{number}]], \"a\"]\n"));
    for name in ["bot.toml", "meta"] {
        let long = Parts::new(zst).long(EntryType::Regular, name, MANIFEST, &toml);
        let message = result_of(&long.header(EntryType::Regular, "run", 0).bytes(&[0; 1024]).bytes);
        assert!(message.contains(name) && message.contains("64 KiB"), "{name}: {message}");
        assert!(message.contains("keep only"), "{name}: {message}");
    }
}

#[test]
fn large_headers_are_refused() {
    let name = part(|number| format!("{number:x}/"));
    // Our bundles use Zstandard and have no PAX headers. Other programs write such headers.
    let expected: [(EntryType, &str, &str); 4] = [
        (EntryType::XHeader, "not a file", "larger than 64 KiB"),
        (EntryType::XGlobalHeader, "not a file", "small can play"),
        (EntryType::GNULongName, "path is too long", "path is too long"),
        (EntryType::GNULongLink, "small can play", "small can play"),
    ];
    for (kind, ours, theirs) in expected {
        for (compress, due) in [(zst as fn(&[u8]) -> Vec<u8>, ours), (gz, theirs)] {
            let long = Parts::new(compress).long(kind, "x", b"209715200 path=", &name);
            let message = result_of(&long.small_bot(""));
            assert!(message.contains(due), "{kind:?}: {due:?} in {message}");
        }
    }
}

#[test]
fn large_data_is_packed_in_little_memory() {
    let data = part(|number| format!("{number:x}"));
    // A bundle with a top directory is packed again without it.
    let long = Parts::new(zst).long(EntryType::Regular, "bot/data", b"", &data);
    let message = result_of(&long.small_bot("bot/"));
    // Compressed with our compression this bundle counts as a bomb. The check runs after packing.
    assert!(message.contains("1000 times its size"), "{message}");
}

#[test]
fn manifests_that_are_not_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |what: &str| {
        let error = Bot::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("bot.toml") && error.contains("put"), "{what}: {error}");
        fs::remove_file(directory.path().join("bot.toml")).unwrap();
    };
    fs::write(directory.path().join("run"), "").unwrap();
    let manifest = directory.path().join("bot.toml");
    for target in ["/dev/zero", "/dev/stdin", "/etc/passwd", "../nowhere", "bot.toml"] {
        symlink(target, &manifest).unwrap();
        refused(target);
    }
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &manifest, fifo, mode, 0).unwrap();
    refused("a FIFO");
    symlink("conf", &manifest).unwrap();
    fs::write(directory.path().join("conf"), MANIFEST).unwrap();
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(directory.path().join("run"), mode).unwrap();
    assert_eq!(Bot::load(Path::new(directory.path())).unwrap().name.as_str(), "small");
}
