//! The spool: its reports survive the worker, and damaged files are set aside.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::fs;
use std::path::Path;

use arbiter_proto::ids::{Attempt, Lease, LotId, LotNumber, MatchId, MatchNumber, TournamentId};
use arbiter_proto::v1;
use arbiter_worker::spool::{Spool, SpoolError};

fn lease(lot: i64, attempt: i32) -> Lease {
    let lot = LotId { tournament: TournamentId(3), number: LotNumber(lot) };
    Lease { lot, attempt: Attempt(attempt) }
}

fn report(lease: Lease) -> v1::Report {
    let result = v1::MatchResult { number: 7, record: vec![9; 10_000], ..Default::default() };
    v1::Report {
        lease: Some(lease.into()),
        results: vec![result],
        level: "A".to_owned(),
        trial: None,
        trace: String::new(),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn reports_survive_a_restart_of_the_worker() {
    let directory = tempfile::tempdir().unwrap();
    let one = lease(5, 1);
    let shadowed = MatchId { tournament: TournamentId(3), number: MatchNumber(8) };
    let two = Lease::of_shadow(shadowed, Attempt(12));
    let spool = Spool::open(directory.path()).unwrap();
    let name = spool.name().unwrap();
    spool.insert(one, &report(one)).unwrap();
    spool.insert(two, &report(two)).unwrap();
    drop(spool);

    let spool = Spool::open(directory.path()).unwrap();
    assert_eq!(spool.leases(), [two, one]);
    assert_eq!(spool.read(two), Some(report(two)));
    assert_eq!(spool.name().unwrap(), name, "the same worker");
    assert!(spool.remove(two) && !spool.remove(two));
    assert_eq!(spool.read(two), None);
    drop(spool);
    assert_eq!(Spool::open(directory.path()).unwrap().leases(), [one]);
}

#[test]
fn a_directory_has_one_worker() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    let error = Spool::open(directory.path()).unwrap_err();
    assert!(matches!(error, SpoolError::Taken(_)), "{error}");
    drop(spool);
    Spool::open(directory.path()).unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Spool::open(&file), Err(SpoolError::Unusable { .. })));
}

#[test]
fn damaged_and_foreign_files_are_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let whole = lease(1, 1);
    let spool = Spool::open(directory.path()).unwrap();
    spool.insert(whole, &report(whole)).unwrap();
    drop(spool);
    let reports = directory.path().join("reports");
    let bytes = fs::read(reports.join("3_1_1")).unwrap();
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (name, contents) in [
        ("3_2_1", &bytes[..bytes.len() / 2]),
        ("3_3_1", &flipped[..]),
        ("3_4_1", &bytes[..]),
        ("3_5_1", b""),
        ("notes.txt", b"remember the milk"),
        ("3_6", b""),
        (".new-4f2a", b"half of"),
    ] {
        fs::write(reports.join(name), contents).unwrap();
    }
    let spool = Spool::open(directory.path()).unwrap();
    assert_eq!(spool.leases(), [whole]);
    let aside = directory.path().join("aside");
    assert_eq!(names(&aside), ["3_2_1", "3_3_1", "3_4_1", "3_5_1", "3_6", "notes.txt"]);
    assert_eq!(names(&reports), ["3_1_1"]);

    // A report that is damaged later is set aside when it is read.
    fs::write(reports.join("3_1_1"), "torn").unwrap();
    assert_eq!(spool.read(whole), None);
    assert!(spool.leases().is_empty() && names(&aside).contains(&"3_1_1".to_owned()));
}

#[test]
fn reports_for_another_database_are_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    let old = lease(1, 1);
    spool.insert(old, &report(old)).unwrap();
    spool.bind_to_database("one");
    assert_eq!(spool.leases(), [old], "the spool was not bound to a database before");
    spool.bind_to_database("one");
    assert_eq!(spool.leases(), [old]);
    drop(spool);
    let spool = Spool::open(directory.path()).unwrap();
    spool.bind_to_database("another");
    assert!(spool.leases().is_empty());
    assert_eq!(names(&directory.path().join("aside")), ["3_1_1"]);
    let new = lease(1, 1);
    spool.insert(new, &report(new)).unwrap();
    spool.bind_to_database("another");
    assert_eq!(spool.leases(), [new]);
}
