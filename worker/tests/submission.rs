//! Submissions: the same files in any format give the same bundle, and hostile archives are
//! refused.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use arbiter_worker::bundle::{self, Submission};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const MANIFEST: &str = "name = \"sent\"\nrun = [\"./run\"]\nbuild = [\"make\"]\n";

/// A temporary directory with the sources of a bot in `bot`.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let bot = place.path().join("bot");
    fs::create_dir_all(bot.join("src")).unwrap();
    fs::write(bot.join("bot.toml"), MANIFEST).unwrap();
    fs::write(bot.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bot.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(bot.join("src/main.c"), "int main(void) { return 0; }\n").unwrap();
    symlink("src/main.c", bot.join("main.c")).unwrap();
    place
}

fn digest(path: &Path) -> String {
    Submission::read(path).unwrap().bundle.digest().to_string()
}

/// The digest of a submitted archive after unpacking.
fn unpacked(bytes: &[u8]) -> String {
    let to = tempfile::tempdir().unwrap();
    bundle::unpack(bytes, to.path()).unwrap();
    digest(to.path())
}

/// The error for a path that cannot be submitted.
fn refused(path: &Path) -> String {
    Submission::read(path).unwrap_err().to_string()
}

fn tar_of(directory: &Path, within: &str) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.follow_symlinks(false);
    builder.append_dir_all(within, directory).unwrap();
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A zip archive in `place`.
struct Zip {
    writer: ZipWriter<File>,
    path: PathBuf,
}

impl Zip {
    fn new(place: &TempDir) -> Self {
        let path = place.path().join("sent.zip");
        Self { writer: ZipWriter::new(File::create(&path).unwrap()), path }
    }

    fn file(mut self, name: &str, contents: &[u8], mode: u32) -> Self {
        let options = SimpleFileOptions::default().unix_permissions(mode);
        self.writer.start_file(name, options).unwrap();
        self.writer.write_all(contents).unwrap();
        self
    }

    fn link(mut self, name: &str, target: &str) -> Self {
        self.writer.add_symlink(name, target, SimpleFileOptions::default()).unwrap();
        self
    }

    fn end(self) -> PathBuf {
        self.writer.finish().unwrap();
        self.path
    }
}

#[test]
fn the_same_files_give_the_same_bundle() {
    let place = place();
    let bot = place.path().join("bot");
    let expected = digest(&bot);
    assert_eq!(Submission::read(&bot).unwrap().name.as_str(), "sent");
    let tar = tar_of(&bot, "");
    let inside = tar_of(&bot, "bot-1.0");
    let zst = zstd::encode_all(&tar[..], 19).unwrap();
    let forms: [(&str, &[u8]); 5] = [
        ("a.tar", &tar),
        ("b.tar", &inside),
        ("c.tar.gz", &gzip(&tar)),
        ("d.TGZ", &gzip(&inside)),
        ("e.tar.zst", &zst),
    ];
    for (name, bytes) in forms {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert_eq!(digest(&path), expected, "{name}");
        assert_eq!(unpacked(bytes), expected, "{name}");
    }
    let zip = Zip::new(&place)
        .file("bot/run", b"#!/bin/sh\n", 0o755)
        .file("bot/src/main.c", b"int main(void) { return 0; }\n", 0o640)
        .link("bot/main.c", "src/main.c")
        .file("bot/bot.toml", MANIFEST.as_bytes(), 0o600);
    let zip = zip.end();
    assert_eq!(digest(&zip), expected);
    assert_eq!(unpacked(&fs::read(&zip).unwrap()), expected);
    // An invalid archive gives the same errors as an invalid bundle.
    let evil = Zip::new(&place).file("../evil", b"x", 0o644).end();
    let to = tempfile::tempdir().unwrap();
    let message = bundle::unpack(&fs::read(evil).unwrap(), to.path()).unwrap_err().to_string();
    assert!(message.contains("not a valid path"), "{message}");
    // Files of version control are not part of the bundle.
    fs::create_dir(bot.join(".git")).unwrap();
    fs::write(bot.join(".git/index"), "private").unwrap();
    assert_eq!(digest(&bot), expected);
    fs::write(bot.join("src/main.c"), "int main(void) { return 1; }\n").unwrap();
    assert_ne!(digest(&bot), expected);
}

#[test]
fn a_path_without_a_bot_is_refused() {
    let place = place();
    let zip = Zip::new(&place).file("readme", b"hello", 0o644).end();
    assert!(refused(&zip).contains("sent.zip: not a bot: it has neither a bot.toml nor"));
    let zip = Zip::new(&place).file("bot.toml", b"name = 1", 0o644).end();
    let message = refused(&zip);
    assert!(message.contains("sent.zip: bot.toml: line 1"), "{message}");
    let noise = place.path().join("noise.tar.gz");
    fs::write(&noise, "no archive").unwrap();
    assert!(refused(&noise).contains("noise.tar.gz"));
    assert!(refused(Path::new("/nowhere.zip")).contains("/nowhere.zip: No such file"));
}

#[test]
fn nothing_is_unpacked_outside_the_directory() {
    let place = place();
    for name in ["../evil", "/tmp/evil", "a/../../evil"] {
        let message = refused(&Zip::new(&place).file(name, b"x", 0o644).end());
        assert!(message.contains("not a valid path"), "{name}: {message}");
    }
    for (name, target) in [("a", "/etc/passwd"), ("a", ".."), ("a/b", "../../c"), ("a", "gone")] {
        let message = refused(&Zip::new(&place).link(name, target).end());
        assert!(message.contains("does not lead"), "{name} -> {target}: {message}");
    }
    let through = Zip::new(&place).link("l", "src").file("l/evil", b"x", 0o644).end();
    assert!(refused(&through).contains("duplicate"));
    let long = "n".repeat(300);
    assert!(refused(&Zip::new(&place).file(&long, b"x", 0o644).end()).contains("not a valid path"));
    let deep = ["d"; 800].join("/");
    assert!(refused(&Zip::new(&place).file(&deep, b"x", 0o644).end()).contains("path is too long"));
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::Link] {
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o644);
        header.set_link_name("/etc/passwd").unwrap();
        builder.append_data(&mut header, "node", &b""[..]).unwrap();
        let path = place.path().join("node.tar");
        fs::write(&path, builder.into_inner().unwrap()).unwrap();
        assert!(refused(&path).contains("not a file, directory or link"), "{kind:?}");
    }
}

#[test]
fn duplicate_entries_are_refused() {
    let place = place();
    let zip = Zip::new(&place).file("same1", b"one", 0o644).file("same2", b"two", 0o644).end();
    let mut bytes = fs::read(&zip).unwrap();
    let names: Vec<_> =
        bytes.windows(5).enumerate().filter(|(_, name)| *name == b"same2").collect();
    let places: Vec<_> = names.into_iter().map(|(at, _)| at + 4).collect();
    assert_eq!(places.len(), 2, "in front of the file and in the directory");
    for at in places {
        bytes[at] = b'1';
    }
    fs::write(&zip, bytes).unwrap();
    assert!(refused(&zip).contains("duplicate"));
    let mut builder = Builder::new(Vec::new());
    for contents in ["one", "two"] {
        let mut header = Header::new_gnu();
        header.set_size(3);
        header.set_mode(0o644);
        builder.append_data(&mut header, "same", contents.as_bytes()).unwrap();
    }
    let path = place.path().join("twice.tar");
    fs::write(&path, builder.into_inner().unwrap()).unwrap();
    assert!(refused(&path).contains("duplicate"));
}

#[test]
fn archive_bombs_are_refused() {
    let place = place();
    // Some hundred kilobytes that unpack to 300 MiB, in one file and in many.
    let zeros = vec![0; 100 << 20];
    let mut zip = Zip::new(&place);
    for name in ["a", "b", "c"] {
        zip = zip.file(name, &zeros, 0o644);
    }
    let zip = zip.end();
    assert!(fs::metadata(&zip).unwrap().len() < 1 << 20);
    let message = refused(&zip);
    assert!(message.contains("exceed 256 MiB in total"), "{message}");
    let tar = place.path().join("zeros.tar.zst");
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(zeros.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    fs::write(&tar, zstd::encode_all(&[header.as_bytes(), &zeros[..]].concat()[..], 3).unwrap())
        .unwrap();
    let message = refused(&tar);
    assert!(message.contains("1000 times its size"), "{message}");
    // The same files in a directory.
    fs::write(place.path().join("bot/zeros"), &zeros).unwrap();
    let message = refused(&place.path().join("bot"));
    assert!(message.contains("1000 times its size"), "{message}");
}

#[test]
fn archives_with_too_many_files_are_refused() {
    let place = place();
    let path = place.path().join("many.tar.zst");
    let mut encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
    let mut header = Header::new_gnu();
    header.set_path("0000000").unwrap();
    header.set_size(0);
    header.set_mode(0o644);
    header.set_cksum();
    let block = *header.as_bytes();
    let sum = header.cksum().unwrap();
    for number in 0..1_000_000 {
        let name = format!("{number:07}");
        let more: u32 = name.bytes().map(|digit| u32::from(digit - b'0')).sum();
        let mut block = block;
        block[..7].copy_from_slice(name.as_bytes());
        block[148..155].copy_from_slice(format!("{:07o}", sum + more).as_bytes());
        encoder.write_all(&block).unwrap();
    }
    encoder.finish().unwrap();
    assert!(refused(&path).contains("more than 10000 files"));
    let mut zip = Zip::new(&place);
    for number in 0..=10_000 {
        zip = zip.file(&format!("f{number}"), b"", 0o644);
    }
    assert!(refused(&zip.end()).contains("more than 10000 files"));
}
