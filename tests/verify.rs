//! No tampered record passes verification.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Bots, files, run, succeed};

/// Records with all kinds of content: replies, forfeits, bytes that are not text, hands, standard
/// error.
fn records(bots: &Bots) -> Vec<String> {
    let directory = bots.path().join("records");
    let out = directory.to_str().unwrap();
    let honest = &bots.rascal("honest", "honest", 0, "");
    let odd = &bots.rascal("odd", "utf8", 2, "");
    let loud = &bots.rascal("loud", "stderr", 1, "stderr = true\n");
    let slow = &bots.rascal("slow", "slow", 1, "");
    for (game, rival, set) in [
        ("gomoku", odd, "overline=wins"),
        ("gomoku", loud, "overline=wins"),
        ("gomoku", slow, "move_limit=200ms"),
        ("bitwa", odd, "rounds=9"),
        ("blackjack", odd, "hands=5"),
    ] {
        let seed = format!("{game} {rival}");
        succeed(&["play", game, honest, rival, "--seed", &seed, "--set", set, "--record", out]);
    }
    files(&directory).iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Whether the record passes.
fn passes(path: &Path, record: &[u8]) -> bool {
    fs::write(path, record).unwrap();
    match run(&["verify", path.to_str().unwrap()]).status.code() {
        Some(0) => true,
        Some(1) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_edit_is_detected() {
    let bots = Bots::new();
    let path = bots.path().join("edited.jsonl");
    let records = records(&bots);
    assert_eq!(records.len(), 5);
    for record in &records {
        assert!(passes(&path, record.as_bytes()), "{record}");
        let lines: Vec<_> = record.split_inclusive('\n').collect();
        for edited in edits(record, &lines) {
            assert_ne!(&edited, record);
            assert!(!passes(&path, edited.as_bytes()), "{edited}");
        }
    }
}

/// Many ways to tamper with a record.
fn edits(record: &str, lines: &[&str]) -> Vec<String> {
    let last = lines.len() - 1;
    let mut edits = vec![String::new(), record.trim_end().to_owned(), format!("{record}{record}")];
    edits.extend([format!("{record}\n"), format!("\n{record}"), record.replace('\n', "\r\n")]);
    edits.extend(["abc", " ", "\0", lines[0].trim_end()].map(|more| format!("{record}{more}")));
    // Cut anywhere, or with a line missing, doubled, or in another's place.
    for cut in [1, 2, lines.len() / 2, last] {
        edits.push(lines[..cut].concat());
        edits.push(lines[cut..].concat());
    }
    let middle = [1, 2, 3, lines.len() / 2, last - 1, last];
    for index in middle {
        let mut without = lines.to_vec();
        edits.push({
            without.remove(index);
            without.concat()
        });
        let mut doubled = lines.to_vec();
        doubled.insert(index, lines[index]);
        edits.push(doubled.concat());
        let mut swapped = lines.to_vec();
        swapped.swap(index, index - 1);
        edits.push(swapped.concat());
    }
    // One digit or letter more or less, anywhere.
    for index in middle {
        for (from, to) in [("1", "2"), ("0", "1"), ("2", "0"), ("t\":", "t\": "), ("{", "{ ")] {
            let edited = lines[index].replacen(from, to, 1);
            if edited != lines[index] {
                let mut changed = lines.to_vec();
                changed[index] = &edited;
                edits.push(changed.concat());
            }
        }
    }
    // What people would want to change.
    let wishes = [
        ("\"bot\":\"honest\"", "\"bot\":\"winner\""),
        ("\"rules\":\"1\"", "\"rules\":\"2\""),
        ("\"record\":1", "\"record\":2"),
        ("\"margin\":\"20ms\"", "\"margin\":\"1h\""),
        ("\"protocol\":\"stdio\"", "\"protocol\":\"exec\""),
        ("\"sandbox\":\"", "\"sandbox\":\"A"),
        ("\"sandbox\":", "\"sand\":"),
        ("\"forfeit\":\"clock\"", "\"forfeit\":\"gone\""),
        ("\"forfeits\":[null,null]", "\"forfeits\":[null,\"clock\"]"),
        ("\"over\":true", "\"over\":false"),
        ("\"wall_us\":", "\"wall_us\":9"),
        ("\"cpu_us\":", "\"cpu_us\":9"),
        ("\"stderr\":\"e", "\"stderr\":\"f"),
        ("\"dealer\":\"", "\"dealer\":\"A"),
        ("\"digest\":\"", "\"digest\":\"0"),
        ("\"detail\":\"", "\"detail\":\"not "),
    ];
    let changed = wishes.iter().map(|(from, to)| record.replacen(from, to, 1));
    edits.extend(changed.filter(|edited| edited != record));
    edits
}

#[test]
fn compressed_records_are_verified_also_in_a_folder() {
    let bots = Bots::new();
    let record = &records(&bots)[0];
    let folder = bots.path().join("downloads");
    fs::create_dir(&folder).unwrap();
    let write = |text: &str| {
        let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
        fs::write(folder.join("match-cup-7.jsonl.zst"), packed).unwrap();
    };
    write(record);
    let verify = ["verify", folder.to_str().unwrap()];
    assert!(succeed(&verify).contains("match-cup-7.jsonl.zst: ok"));
    write(&record.replacen("\"seed\":\"", "\"seed\":\"0", 1));
    assert_eq!(run(&verify).status.code(), Some(1), "an edited one is wrong");
}

#[test]
fn the_first_difference_is_named() {
    let bots = Bots::new();
    let record = records(&bots).swap_remove(0);
    let path = bots.path().join("edited.jsonl");
    let lines: Vec<_> = record.split_inclusive('\n').collect();
    let edited = [&lines[..4], &lines[5..]].concat().concat();
    assert!(!passes(&path, edited.as_bytes()));
    let output = run(&["verify", path.to_str().unwrap()]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("WRONG, line 5: expected by the rules"), "{stdout}");
    let output = run(&["verify", "--json", path.to_str().unwrap()]);
    let stdout: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(stdout["ok"], false);
    assert!(stdout["difference"].as_str().unwrap().starts_with("line 5: "));
}

/// The record with a recomputed seal.
fn resealed(record: &str) -> String {
    let body = record.trim_end().rfind('\n').unwrap() + 1;
    let (body, last) = record.split_at(body);
    let seal = last.find("\"seal\":\"").unwrap() + "\"seal\":\"".len();
    format!("{body}{}{}\"}}\n", &last[..seal], blake3::hash(body.as_bytes()).to_hex())
}

#[test]
fn the_rules_detect_edits_with_a_recomputed_hash() {
    let bots = Bots::new();
    let path = bots.path().join("edited.jsonl");
    let mut forged = 0;
    for record in records(&bots) {
        assert_eq!(resealed(&record), record, "the seal is what the page says it is");
        for (from, to) in [
            ("\"scores\":[[2],[0]]", "\"scores\":[[0],[2]]"),
            ("\"send\":\"A []\"", "\"send\":\"A [] \""),
            ("\"reply\":\"(7,7)(7,8)(8,8)\"", "\"reply\":\"(7,7)(7,8)(8,9)\""),
            ("\"margin\":\"20ms\"", "\"margin\":\"1h\""),
            ("\"sandbox\":\"", "\"sandbox\":\"Z"),
            ("\"sandbox\":", "\"level\":"),
            ("\"wall_us\":", "\"wall_us\":-"),
            ("\"seat\":2,\"stderr\"", "\"seat\":3,\"stderr\""),
            ("\"protocol\":\"stdio\"", "\"protocol\":\"http\""),
            ("\"dealer\":\"", "\"dealer\":\"A"),
            ("\"over\":true", "\"over\":false"),
        ] {
            let edited = resealed(&record.replacen(from, to, 1));
            if edited != record {
                forged += 1;
                // A longer margin changes nothing if no bot was late.
                let harmless = from.contains("margin") && !record.contains("\"clock\",\"wall");
                assert!(harmless || !passes(&path, edited.as_bytes()), "{from} → {to}: {edited}");
            }
        }
    }
    assert!(forged > 10, "{forged} edits were tried");
}

#[test]
fn differences_of_the_last_line_are_said_in_words() {
    let bots = Bots::new();
    let path = bots.path().join("edited.jsonl");
    let honest = &bots.rascal("honest", "honest", 0, "");
    let rude = &bots.rascal("rude", "garbage", 0, "");
    let records = bots.path().join("records");
    let out = records.to_str().unwrap();
    succeed(&["play", "gomoku", honest, rude, "--record", out, "--games", "1"]);
    let record = fs::read_to_string(&files(&records)[0]).unwrap();
    for (from, to, difference) in [
        (
            "[null,\"illegal\"]",
            "[null,null]",
            "forfeit of seat 2: none; expected by the rules: illegal",
        ),
        ("[null,\"illegal\"]", "[null]", "forfeit: of 1 seats; the match has 2"),
        ("\"scores\":[[2]", "\"scores\":[[0]", "score of seat 1: 0; expected by the rules: 2"),
    ] {
        assert!(record.contains(from), "{record}");
        fs::write(&path, record.replacen(from, to, 1)).unwrap();
        let output = run(&["verify", path.to_str().unwrap()]);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains(difference), "{stdout}");
    }
}

/// Writes an export with one match of this game, which has this record. Its tournament is open.
fn export(folder: &Path, game: &Value, record: &str) {
    fs::create_dir_all(folder.join("records")).unwrap();
    let tournament = json!({"edition": 1, "state": "complete", "seed_hash": "0".repeat(64),
        "seed": null, "settings": game});
    fs::write(folder.join("tournament.json"), tournament.to_string()).unwrap();
    let header: Value = serde_json::from_str(record.lines().next().unwrap()).unwrap();
    let line = json!({"match": 0, "seats": header["seats"], "scores": []});
    fs::write(folder.join("matches.jsonl"), format!("{line}\n")).unwrap();
    fs::write(folder.join("records/000000.jsonl"), record).unwrap();
}

#[test]
fn a_record_of_another_package_than_its_export_is_wrong() {
    let bots = Bots::new();
    let played = bots.path().join("played");
    let honest = bots.rascal("honest", "honest", 0, "");
    let rude = bots.rascal("rude", "garbage", 0, "");
    let out = played.to_str().unwrap();
    succeed(&["play", "gomoku", &honest, &rude, "--record", out, "--games", "1"]);
    let record = fs::read_to_string(&files(&played)[0]).unwrap();
    let game = "\"game\":\"gomoku\"";
    assert!(record.contains(game), "{record}");
    let zeros = "0".repeat(64);
    let packaged = |name: &str| {
        let header = format!("\"game\":\"{name}\",\"package\":\"{zeros}\"");
        resealed(&record.replacen(game, &header, 1))
    };
    let of = |name: &str, digest: &str| json!({"game": name, "package": {"digest": digest}});
    let folder = bots.path().join("export");
    let place = folder.to_str().unwrap();
    let expect = |code: i32, part: &str| {
        let output = run(&["verify", place]);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{part}: {stdout}");
        assert!(stdout.contains(part), "{part}: {stdout}");
    };
    let built_in = json!({"game": "gomoku"});
    export(&folder, &built_in, &record);
    expect(0, "000000.jsonl: ok");
    // The record of a match that the edition does not have.
    let extra = folder.join("records/000001.jsonl");
    fs::write(&extra, packaged("gomoku")).unwrap();
    expect(1, "000001.jsonl: WRONG, line 1: the edition has no match of this number");
    fs::remove_file(&extra).unwrap();
    // The export lacks its package, so nothing is known about its own record.
    export(&folder, &of("four", &zeros), &packaged("four"));
    expect(2, "000000.jsonl: not checked");
    let was = "000000.jsonl: WRONG, line 1: match 0 was played with the game package";
    for (game, record, tournament) in [
        (built_in, packaged("gomoku"), "gomoku".to_owned()),
        (of("four", &"f".repeat(64)), packaged("four"), "the game package four".to_owned()),
        (of("five", &zeros), packaged("four"), format!("the game package five of digest {zeros}")),
    ] {
        export(&folder, &game, &record);
        expect(1, was);
        expect(1, &format!(" of digest {zeros}, the tournament plays {tournament}"));
    }
}
