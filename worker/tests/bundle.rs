//! Bundles: packing and unpacking restores the files, and hostile archives are refused.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use arbiter_worker::bot::Bot;
use arbiter_worker::bundle::{
    self, Bundle, BundleError, MAX_STATE_UNPACKED, MAX_UNPACKED, Submission,
};
use arbiter_worker::sandbox::BotSource;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(Vec<u8>, bool),
    Link(PathBuf),
}

/// Everything below a directory.
fn tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    collect_nodes(root, root, &mut nodes);
    nodes
}

fn collect_nodes(root: &Path, directory: &Path, nodes: &mut BTreeMap<PathBuf, Node>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        let node = if kind.is_dir() {
            collect_nodes(root, &path, nodes);
            Node::Directory
        } else if kind.is_symlink() {
            Node::Link(fs::read_link(&path).unwrap())
        } else {
            let runs = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert!(runs == 0o755 || runs == 0o644 || root.join("bot.toml").exists());
            Node::File(fs::read(&path).unwrap(), runs & 0o111 != 0)
        };
        nodes.insert(path.strip_prefix(root).unwrap().to_owned(), node);
    }
}

fn write(path: &Path, contents: &[u8], mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory with a bot and more files.
fn bot(files: &BTreeMap<String, (Vec<u8>, u32)>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let manifest = b"name = \"packed\"\nrun = [\"./run\"]\n";
    write(&directory.path().join("bot.toml"), manifest, 0o600);
    write(&directory.path().join("run"), b"#!/bin/sh\n", 0o700);
    for (name, (contents, mode)) in files {
        write(&directory.path().join("files").join(name), contents, *mode);
    }
    fs::create_dir(directory.path().join("empty")).unwrap();
    symlink("files", directory.path().join("link")).unwrap();
    directory
}

fn pack(directory: &Path) -> Bundle {
    Bundle::of(&Bot::load(directory).unwrap()).unwrap()
}

fn refused(bytes: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let error = bundle::unpack(bytes, &inside).unwrap_err();
    assert!(matches!(error, BundleError::Invalid(_)), "{error}");
    let beside: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(beside.len(), 1, "nothing is written outside");
    error.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn packing_and_unpacking_restores_the_files(
        files in btree_map(
            "[a-zA-Z0-9._ ąé-]{0,20}/?[a-z]{1,120}",
            (vec(any::<u8>(), 0..2000), prop::sample::select(vec![0o600_u32, 0o755, 0o444])),
            0..8,
        ),
    ) {
// A name cannot be both a file and a directory, and no path may be absolute.
        let fits = |name: &str| !name.starts_with(['/', '.', ' ']) && !files.keys().any(|other| {
            other.starts_with(&format!("{name}/"))
        });
        let files: BTreeMap<_, _> =
            files.iter().filter(|(name, _)| fits(name)).map(|(a, b)| (a.clone(), b.clone())).collect();
        let one = bot(&files);
        let two = bot(&files);
        fs::create_dir_all(one.path().join("files")).unwrap();
        fs::create_dir_all(two.path().join("files")).unwrap();
        let bundle = pack(one.path());
        prop_assert_eq!(&bundle, &pack(two.path()), "the same files give the same bytes");
        prop_assert_eq!(bundle.digest(), blake3::hash(bundle.bytes()));
        let out = tempfile::tempdir().unwrap();
        bundle::unpack(bundle.bytes(), out.path()).unwrap();
        prop_assert_eq!(tree(one.path()), tree(out.path()));
        prop_assert_eq!(&bundle, &pack(out.path()), "packed again it is the same");
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..400), compressed in any::<bool>()) {
        let bytes = if compressed { zstd::encode_all(&bytes[..], 1).unwrap() } else { bytes };
        let out = tempfile::tempdir().unwrap();
        let unpacked = bundle::unpack(&bytes, out.path());
        let harmless = matches!(unpacked, Ok(()) | Err(BundleError::Invalid(_)));
        prop_assert!(harmless);
    }
}

#[test]
fn a_single_file_becomes_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("quick \"one\".sh");
    write(&program, b"#!/bin/sh\n", 0o755);
    assert!(Bot::load(&program).is_err(), "a name that no bot can have");
    let program = directory.path().join("quick.sh");
    write(&program, b"#!/bin/sh\n", 0o755);
    let bundle = pack(&program);
    let out = tempfile::tempdir().unwrap();
    bundle::unpack(bundle.bytes(), out.path()).unwrap();
    let unpacked = Bot::unpacked(out.path(), bundle.digest()).unwrap();
    assert_eq!(
        (unpacked.name.as_str(), &unpacked.run[..]),
        ("quick", &["./quick.sh".to_owned()][..])
    );
    assert_eq!(unpacked.digest, bundle.digest().to_string());
    let program = directory.path().join("bot.toml");
    write(&program, b"#!/bin/sh\n", 0o755);
    let named = Bundle::of(&Bot::load(&program).unwrap()).unwrap_err().to_string();
    assert!(named.contains("rename it"), "{named}");
}

#[test]
fn a_source_file_is_the_same_bot_locally_and_as_a_submission() {
    let directory = tempfile::tempdir().unwrap();
    let python = directory.path().join("quick.py");
    for mode in [0o644, 0o755] {
        write(&python, b"print()\n", mode);
        let Submission { name, bundle } = Submission::read(&python).unwrap();
        assert_eq!(name.as_str(), "quick");
        assert_eq!(bundle, pack(&python), "{mode:o}");
        assert_eq!(Bot::load(&python).unwrap().run, ["python3", "quick.py"]);
        assert_eq!(Bot::build_due(&python), None);
    }
    let c = directory.path().join("slow.c");
    write(&c, b"int main(void) { return 0; }\n", 0o644);
    assert_eq!(Bot::build_due(&c).unwrap(), "cc -O2 -o bot slow.c -lm");
    let bot = Bot::load(&c).unwrap();
    assert_eq!((bot.name.as_str(), &bot.run[..]), ("slow", &["./bot".to_owned()][..]));
    let BotSource::Directory(files) = bot.source.clone() else { panic!("{bot:?}") };
    assert!(files.join("bot").is_file(), "it is built");
    drop(bot);
    assert!(!files.exists(), "its directory lasts as long as the bot");
    write(&c, b"nonsense\n", 0o644);
    let error = Bot::load(&c).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: cannot build: cc ", c.display())), "{error}");
}

#[test]
fn links_that_lead_outside_are_not_packed() {
    let directory = bot(&BTreeMap::new());
    let bot = Bot::load(directory.path()).unwrap_err().to_string();
    assert!(bot.contains("does not lead"), "{bot}");
    fs::create_dir(directory.path().join("files")).unwrap();
    let bot = Bot::load(directory.path()).unwrap();
    // An absolute link into the directory is invalid elsewhere.
    symlink(directory.path().join("run"), directory.path().join("absolute")).unwrap();
    let error = Bundle::of(&bot).unwrap_err().to_string();
    assert!(error.starts_with("absolute: this link does not lead"), "{error}");
}

/// An archive with entries that an honest program never writes.
struct Forged(Builder<Vec<u8>>);

impl Forged {
    fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn entry(mut self, kind: EntryType, path: &str, target: &str, contents: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        fields.name[..path.len()].copy_from_slice(path.as_bytes());
        fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o6755);
        header.set_size(contents.len() as u64);
        header.set_cksum();
        self.0.append(&header, contents).unwrap();
        self
    }

    fn file(self, path: &str) -> Self {
        self.entry(EntryType::Regular, path, "", b"x")
    }

    fn link(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path, target, b"")
    }

    fn directory(self, path: &str) -> Self {
        self.entry(EntryType::Directory, path, "", b"")
    }

    fn bytes(self) -> Vec<u8> {
        zstd::encode_all(&self.0.into_inner().unwrap()[..], 1).unwrap()
    }
}

#[test]
fn nothing_is_written_outside_the_directory() {
    for path in ["../evil", "/tmp/evil", "a/../../evil", "a/..", ".."] {
        let message = refused(&Forged::new().file(path).bytes());
        assert!(message.contains("not a valid path"), "{path}: {message}");
    }
    for (path, target) in [
        ("a", ""),
        ("a", "/etc/passwd"),
        ("a", ".."),
        ("a", "b/../../c"),
        ("a/b", "../../c"),
        ("a", "gone"),
    ] {
        let message = refused(&Forged::new().link(path, target).bytes());
        assert!(message.contains("does not lead"), "{path} -> {target}: {message}");
    }
    // The text of the second link leads inside the directory, but through the first link it leads
    // outside.
    let chain = Forged::new().directory("a/b").link("a/b/x", "../..").link("y", "a/b/x/../..");
    assert!(refused(&chain.bytes()).contains("does not lead"));
    let through = Forged::new().directory("a").link("l", "a").file("l/evil");
    assert!(refused(&through.bytes()).contains("duplicate"));
    let through = Forged::new().directory("a").link("l", "a").link("l/evil", "../a");
    assert!(refused(&through.bytes()).contains("duplicate"));
    let replaced = Forged::new().link("a", "b").file("b").file("a");
    assert!(refused(&replaced.bytes()).contains("duplicate"));
}

#[test]
fn only_files_directories_and_links_are_unpacked() {
    let kinds = [
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Link,
        EntryType::GNUSparse,
        EntryType::XHeader,
    ];
    for kind in kinds {
        let message = refused(&Forged::new().file("b").entry(kind, "a", "b", b"").bytes());
        assert!(message.contains("not a file, directory or link"), "{kind:?}: {message}");
    }
}

#[test]
fn archives_beyond_the_limits_are_refused() {
    let mut archive = Forged::new();
    for number in 0..=bundle::MAX_ENTRIES {
        archive = archive.link(&format!("l{number}"), "l0");
    }
    assert!(refused(&archive.bytes()).contains("more than 10000 files"));

    // Some kilobytes that unpack to a quarter of a gigabyte: one file, or long names of skipped
    // entries.
    let name = Forged::new().entry(EntryType::GNULongName, "", "", &vec![b'n'; 1 << 20]);
    let names = zstd::encode_all(&name.0.into_inner().unwrap()[..(1 << 20) + 512], 3).unwrap();
    assert!(refused(&names.repeat(256)).contains("1000 times its size"));
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(MAX_UNPACKED);
    header.set_mode(0o644);
    header.set_cksum();
    let file = zstd::encode_all(&header.as_bytes()[..], 3).unwrap();
    assert!(refused(&file).contains("1000 times its size"));

    let long = Forged::new().entry(EntryType::GNULongName, "././@LongLink", "", &[b'a'; 5000]);
    assert!(refused(&long.file("a").bytes()).contains("not a valid path"));
    for broken in [&b""[..], b"no archive", &Forged::new().file("a").bytes()[..40]] {
        let directory = tempfile::tempdir().unwrap();
        let unpacked = bundle::unpack(broken, directory.path());
        assert!(broken.is_empty() || unpacked.is_err());
    }
}

#[test]
fn files_have_mode_644_or_755() {
    let directory = tempfile::tempdir().unwrap();
    bundle::unpack(&Forged::new().file("runs").bytes(), directory.path()).unwrap();
    let mode = fs::metadata(directory.path().join("runs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "neither setuid nor setgid");
}

#[test]
fn bot_state_is_packed_and_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    assert_eq!(bundle::pack_state(directory.path()).unwrap(), b"");
    bundle::unpack_state(b"", out.path()).unwrap();
    write(&directory.path().join("a/b"), b"what I know of you", 0o644);
    symlink("/etc/passwd", directory.path().join("c")).unwrap();
    let packed = bundle::pack_state(directory.path()).unwrap();
    bundle::unpack_state(&packed, out.path()).unwrap();
    let paths: Vec<_> = tree(out.path()).into_keys().collect();
    assert_eq!(paths, [Path::new("a"), Path::new("a/b")], "links are not stored");
    assert_eq!(
        bundle::pack_state(out.path()).unwrap(),
        packed,
        "the same files give the same bytes"
    );

    let max = usize::try_from(MAX_STATE_UNPACKED).unwrap();
    write(&directory.path().join("long"), &vec![0; max], 0o644);
    let error = bundle::pack_state(directory.path()).unwrap_err().to_string();
    assert!(error.contains("exceed 8 MiB"), "{error}");
    let link = Forged::new().file("b").link("a", "b").bytes();
    assert!(matches!(bundle::unpack_state(&link, out.path()), Err(BundleError::Invalid(_))));
}
