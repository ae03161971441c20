//! The files of a site in its directory, beside files of the user such as `CNAME` or `.git`.
//!
//! A site has a list of the files that the export wrote, with their digests, in the format of
//! `sha256sum`. The next export replaces these files and keeps all others. It refuses to replace a
//! file that was changed meanwhile.

use std::collections::{HashMap, HashSet};
use std::env;
use std::fs::{self, File, FileType, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::output::hex;

/// The name of the list. A directory without it has no site.
const LIST: &str = ".arbiter-site";
/// How the list begins, in every release.
const MARK: &str = "# ";
/// The first line of the list. `sha256sum` skips it.
const HEADING: &str = "# The files that arbiter tournament export wrote, with their SHA-256. The next \
    export replaces them and keeps all others.";

/// A file or folder in a directory.
struct Entry {
    /// Its path from the directory.
    path: PathBuf,
    kind: FileType,
}

/// The directory that a site is written to, which may be named by a symbolic link.
pub(super) fn target(directory: &Path) -> PathBuf {
    fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Whether a site can be written to this directory: it is missing, empty or has a former site.
pub(super) fn check_target(directory: &Path) -> Result<(), String> {
    match fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok(_) => {}
    }
    // The process would be left in the former directory, which is deleted.
    if env::current_dir().is_ok_and(|current| current.starts_with(directory)) {
        let cause = "a site cannot replace the current directory; run the command in another one";
        return Err(cause.to_owned());
    }
    find_others(directory).map(drop)
}

/// Writes the list of the files of a new site.
pub(super) fn write_list(site: &Path) -> io::Result<()> {
    let files = entries(site)?.into_iter().filter(|entry| entry.kind.is_file());
    let line = |Entry { path, .. }: Entry| -> io::Result<String> {
        let digest = file_digest(&site.join(&path))?;
        Ok(format!("{digest}  {}\n", path.display()))
    };
    let lines = files.map(line).collect::<io::Result<String>>()?;
    fs::write(site.join(LIST), format!("{HEADING}\n{lines}"))
}

/// Moves a complete site to its destination. A former site there goes to the place of the new one.
/// The files that no export wrote are in both then.
pub(super) fn install(site: &Path, directory: &Path) -> Result<(), String> {
    if !directory.is_dir() {
        return fs::rename(site, directory).map_err(|error| error.to_string());
    }
    let failed = |error: io::Error| error.to_string();
    let paths = || -> io::Result<Vec<PathBuf>> {
        Ok(entries(directory)?.into_iter().map(|entry| entry.path).collect())
    };
    let before = paths().map_err(failed)?;
    keep_others(directory, site)?;
    if paths().map_err(failed)? != before {
        return Err("its files changed during the export; export again".to_owned());
    }
    let exchanged = renameat_with(CWD, site, CWD, directory, RenameFlags::EXCHANGE);
    exchanged.map_err(|error| error.to_string())?;
    // The former site is deleted next, which needs the permission to write in each of its folders.
    for folder in entries(site).unwrap_or_default().iter().filter(|entry| entry.kind.is_dir()) {
        drop(fs::set_permissions(site.join(&folder.path), Permissions::from_mode(0o700)));
    }
    Ok(())
}

/// Links the files that no export wrote into the new site. Links leave the former site complete
/// until the new one is, and share contents, owners and times.
fn keep_others(former: &Path, site: &Path) -> Result<(), String> {
    let others = find_others(former)?;
    for Entry { path, kind } in &others {
        let new = site.join(path);
        let shown = path.display();
        match fs::symlink_metadata(&new) {
            Ok(taken) if taken.is_dir() && kind.is_dir() => continue,
            Ok(_) => {
                return Err(format!(
                    "no export wrote {shown}, and the new site has a file of this name; move \
                     yours away and export again"
                ));
            }
            Err(_) => {}
        }
        let kept =
            if kind.is_dir() { fs::create_dir_all(&new) } else { link(&former.join(path), &new) };
        kept.map_err(|error| {
            format!(
                "cannot keep {shown}: {error}; a hard link is made of it, so it must be your file \
                 on this file system: move it away and export again"
            )
        })?;
    }
    // Last, because a folder may forbid to write in it.
    let folders = others.iter().filter(|entry| entry.kind.is_dir()).map(|entry| &*entry.path);
    for folder in folders.chain([Path::new("")]) {
        let copied = fs::metadata(former.join(folder))
            .and_then(|metadata| fs::set_permissions(site.join(folder), metadata.permissions()));
        copied.map_err(|error| format!("cannot keep {}: {error}", folder.display()))?;
    }
    Ok(())
}

fn link(file: &Path, new: &Path) -> io::Result<()> {
    if let Some(folder) = new.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::hard_link(file, new)
}

/// What is in a directory besides the files that an export wrote and the folders of these. Refuses
/// a directory without a list, and a file that was changed after its export.
fn find_others(directory: &Path) -> Result<Vec<Entry>, String> {
    let failed = |error: io::Error| error.to_string();
    if fs::read_dir(directory).map_err(failed)?.next().is_none() {
        return Ok(Vec::new());
    }
    let listed = read_list(directory)?;
    let mut others = entries(directory).map_err(failed)?;
    let folders: HashSet<_> = listed.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    for Entry { path, kind } in &others {
        if let Some(digest) = listed.get(path) {
            let shown = path.display();
            let is_unchanged = kind.is_file()
                && file_digest(&directory.join(path))
                    .map_err(|error| format!("cannot read {shown}: {error}"))?
                    == *digest;
            if !is_unchanged {
                return Err(format!(
                    "{shown} was changed after its export; move it away and export again"
                ));
            }
        }
    }
    others.retain(|Entry { path, kind }| {
        let is_of_site = listed.contains_key(path) || (kind.is_dir() && folders.contains(&**path));
        path != Path::new(LIST) && !is_of_site
    });
    Ok(others)
}

/// The files that the export of a site wrote, with their digests.
fn read_list(directory: &Path) -> Result<HashMap<PathBuf, String>, String> {
    let Ok(text) = fs::read_to_string(directory.join(LIST)) else {
        return Err("not empty, and not a site that was exported before; choose another directory"
            .to_owned());
    };
    if !text.starts_with(MARK) {
        return Err(format!(
            "{LIST} does not list the files of the site, as a former release wrote it; move your \
             files and {LIST} away, delete the rest and export again"
        ));
    }
    let lines = text.lines().filter_map(|line| line.split_once("  "));
    Ok(lines.map(|(digest, path)| (PathBuf::from(path), digest.to_owned())).collect())
}

/// Everything in a directory, a folder before what it contains. Symbolic links are not followed.
fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for item in fs::read_dir(directory.join(&folder))? {
            let entry = item?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            found.push(Entry { path, kind });
        }
    }
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The SHA-256 of a file in hexadecimal.
fn file_digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(hex(digest.finish().as_ref()));
        }
        digest.update(&buffer[..length]);
    }
}
