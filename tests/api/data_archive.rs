//! The archive of a tournament's data contains what the single downloads do.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support;
use crate::support::service::done;
use crate::test_server::TestServer;

/// All files below a folder.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { all_files(&path) } else { vec![path] };
    support::files(folder).into_iter().flat_map(below).collect()
}

/// The files of an archive, as the system's `tar` unpacks them, without their folder.
fn unpacked(archive: &[u8]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("archive"), archive).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a program of users is run")]
    let mut tar = Command::new("tar");
    done(&tar.args(["-xzf", "archive"]).current_dir(&folder).output().unwrap());
    let data = folder.path().join("cup-1-data");
    let files = all_files(&data).into_iter().map(|path| {
        let name = path.strip_prefix(&data).unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    files.collect()
}

#[test]
fn an_archive_contains_the_single_downloads() {
    let server = TestServer::played();
    let response = server.get("/t/cup/data.tar.gz", &[]);
    assert_eq!(response.header("content-type"), "application/gzip");
    assert!(response.header("content-disposition").contains("cup-1-data.tar.gz"));
    assert_eq!(server.get("/t/cup/data.tar.gz", &[]).body, response.body, "equal bytes");
    let found = unpacked(&response.body);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    let expected = [
        "README.txt",
        "bots.csv",
        "certificate.json",
        "matches.csv",
        "ranking.csv",
        "rankings/edition-1.csv",
        "statistics.csv",
        "tournament.json",
    ];
    assert_eq!(names, expected);
    for name in ["matches.csv", "ranking.csv", "statistics.csv"] {
        assert_eq!(found[name], server.get(&format!("/t/cup/{name}"), &[]).text(), "{name}");
        for column in found[name].lines().next().unwrap().split(',') {
            let is_explained = |line: &str| line.trim_start().starts_with(&format!("{column} "));
            assert!(found["README.txt"].lines().any(is_explained), "{name}: {column}");
        }
    }
    let of_state = "state counted: the result is in the standings; played: not yet";
    let readme = found["README.txt"].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(of_state), "{readme}");
    let tournament: serde_json::Value = serde_json::from_str(&found["tournament.json"]).unwrap();
    assert_eq!(tournament["seed_hash"], server.json("/api/v1/tournaments/cup")["seed_hash"]);
    assert_eq!(found["bots.csv"].lines().count(), 1 + 5);

    let cookie = format!("Cookie: arbiter={}", server.up.admin());
    let path = "/t/cup/data.tar.gz?records=1";
    for headers in [&[][..], &[&cookie[..]][..]] {
        let found = unpacked(&server.get(path, headers).body);
        let records: Vec<_> =
            found.into_iter().filter(|(name, _)| name.starts_with("records/")).collect();
        assert_eq!(records.len(), 20);
        for (name, text) in records {
            let number: String = name.chars().filter(char::is_ascii_digit).collect();
            let path = format!("/t/cup/matches/{number}/record");
            let single = server.get(&path, headers).body;
            let mut expected = String::new();
            arbiter_replay::unpack(&single).unwrap().read_to_string(&mut expected).unwrap();
            assert_eq!(text, expected, "the same as {path} for the same caller");
        }
    }
    assert_eq!(server.get("/t/none/data.tar.gz", &[]).status, 404);
    server.up.close();
}
