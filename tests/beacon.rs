//! A tournament with a public beacon, from its file to its export, with the real program. No
//! tampered export passes verification.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address};
use support::{Bots, arbiter};

/// The value as its source publishes it, and as it is stored and hashed.
const PUBLISHED: &str = "0x00000000000000000001A17D";
const VALUE: &str = "1a17d";

/// A coordinator, a worker, and an organiser.
struct Site {
    database: Database,
    _services: Vec<Service>,
    server: String,
    organiser: String,
    bots: Bots,
}

impl Site {
    fn open() -> Self {
        let bots = Bots::new();
        let database = Database::start(Durability::Unsynced);
        let [organiser, worker] = ["organiser", "worker"].map(|role| database.token(role));
        let address = free_address();
        let log = bots.path().join("coordinator.log");
        let mut coordinator = Service::start(&mut database.coordinator(address), &log);
        coordinator.wait_for_log("serving");
        let server = format!("http://{address}");
        let mut command = arbiter();
        command.args(["worker", "--slots", "1", "--sandbox", "off", "--name", "cellar"]);
        command.args(["--coordinator", &server, "--spool"]).arg(bots.path().join("spool"));
        let log = bots.path().join("worker.log");
        let worker = Service::start(command.env("ARBITER_TOKEN", worker), &log);
        Self { database, _services: vec![coordinator, worker], server, organiser, bots }
    }

    fn command(&self, token: &str, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' '));
        command.env("ARBITER_SERVER", &self.server).env("ARBITER_TOKEN", token);
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(&self.organiser, words).output().unwrap()
    }

    fn succeed(&self, words: &str) -> String {
        done(&self.run(words))
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.succeed(&format!("{words} --json"))).unwrap()
    }

    /// Creates a tournament whose entry closes in a hundred years.
    fn create(&self, name: &str, beacon: &str) {
        let lines = format!("{beacon}[schedule]\nkind = \"round_robin\"\nsides = \"both\"\n");
        self.create_game(name, "gomoku", &lines);
    }

    /// Like [`Self::create`], for any game, with more lines in the file.
    fn create_game(&self, name: &str, game: &str, lines: &str) {
        let house =
            ["ada", "bob", "eve"].map(|bot| format!("{}/{bot}", self.bots.path().display()));
        let text = format!(
            "name = \"{name}\"\ngame = \"{game}\"\nstate = \"none\"\n{lines}\
             [submissions]\npreflight = false\ncloses = \"2999-01-01T00:00:00Z\"\n\
             [house]\nbots = {house:?}\n"
        );
        let file = self.bots.file(&format!("{name}.toml"), &text);
        self.succeed(&format!("tournament create {file}"));
    }

    fn play(&self, name: &str) {
        self.succeed(&format!("tournament start {name}"));
        self.succeed(&format!("tournament watch {name}"));
    }

    /// Closes entry directly in the database, instead of waiting for its time.
    #[tokio::main(flavor = "current_thread")]
    async fn close_entry(&self) {
        let options = self.database.postgres.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let statement = "UPDATE tournaments SET settings = jsonb_set(settings, \
            '{submissions,closes}', '\"2020-01-01T00:00:00Z\"')";
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

fn refused(output: &Output, code: i32, part: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains(part), "{message}");
}

#[test]
fn a_beacon_from_the_file_to_the_export() {
    let site = Site::open();
    for bot in ["ada", "bob", "eve"] {
        site.bots.rascal(bot, "honest", 0, "");
    }
    site.create("cup", "beacon = \"Bitcoin block 900000 hash\"\n");
    site.play("cup");
    site.play("cup");
    let give = format!("tournament beacon cup {PUBLISHED}");
    refused(&site.run(&give), 1, "entry to cup has not closed");
    site.close_entry();
    let player = site.database.token("player");
    refused(&site.command(&player, &give).output().unwrap(), 3, "role organiser");
    refused(&site.run("tournament close cup"), 1, "arbiter tournament beacon cup VALUE");
    let tournament = site.succeed("tournament show cup");
    assert!(tournament.contains("Bitcoin block 900000 hash; no value yet"), "{tournament}");

    let unseen = "tournament beacon cup 1a\u{200b}17d";
    refused(&site.run(unseen), 2, "character 3 is not an ASCII letter or digit (U+200B)");
    let stdout = site.succeed(&give);
    assert!(stdout.contains(&format!("value: {VALUE}, set ")), "{stdout}");
    assert!(stdout.contains("decides editions from 3 on"), "{stdout}");
    refused(&site.run("tournament beacon cup 1a17e"), 1, "never changes");
    site.succeed("tournament watch cup --edition 3");
    assert!(site.succeed(&give).contains("decides editions from 3 on"), "the same value again");
    let certificate = site.succeed("tournament schedule cup --certificate");
    let origin = format!(
        "seed: keyed with the public beacon \"Bitcoin block 900000 hash\", value \"{VALUE}\"\n"
    );
    assert!(certificate.contains(&origin), "{certificate}");
    let open = site.bots.path().join("open");
    site.succeed(&format!("tournament export cup --records --out {}", open.display()));
    let outcome = support::run(&["verify", open.to_str().unwrap()]);
    assert_eq!(outcome.status.code(), Some(0));
    let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(stdout.contains(origin.trim_end()), "{stdout}");
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(stderr.contains("seeds of its matches are not checked"), "{stderr}");
    assert!(!stderr.contains("not final"), "{stderr}");
    // Records are also compared with results before the seed is published.
    tamper(&open, "match 4: its record gives the scores", |copy| {
        edit_match(copy, 4, |line| line["scores"] = json!([[9], [9]]));
    });
    let early = site.bots.path().join("early");
    site.succeed(&format!("tournament export cup --edition 2 --out {}", early.display()));
    let outcome = support::run(&["verify", early.to_str().unwrap()]);
    assert_eq!(outcome.status.code(), Some(0), "it is open");
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(stderr.contains("its seed is not final: edition 2 comes before edition 3"), "{stderr}");

    a_closed_tournament_is_checked(&site);

    site.create("plain", "");
    site.play("plain");
    let certificate = site.succeed("tournament schedule plain --certificate");
    let origin = "seed: chosen by the organiser; no public beacon\n";
    assert!(certificate.contains(origin), "{certificate}");
    let stdout = site.succeed("tournament check plain");
    let why = "not derived: the seed of plain is published when it is closed\n";
    assert!(stdout.ends_with(why), "{stdout}");
    refused(&site.run("tournament beacon plain 1a17d"), 1, "plain has no beacon");
    site.succeed("tournament close plain");
    boards_and_chips_are_compared(&site);
}

/// A record of the same bots and seed on another board, or with other chips than earlier rounds
/// left, is not accepted for the match.
fn boards_and_chips_are_compared(site: &Site) {
    let boards = "[params]\nrounds = 3\n[schedule]\nboards = [\"pole\", \"przyklad\"]\n";
    let episodes = "[params]\nrounds = 2\nhands = 3\n[schedule]\nepisodes = 2\n";
    for (game, lines, key) in [("bitwa", boards, "board"), ("blackjack", episodes, "chips")] {
        site.create_game(game, game, lines);
        site.play(game);
        if game == "blackjack" {
            let certificate = site.succeed("tournament schedule blackjack --certificate");
            assert!(certificate.contains("3 bots; balance not certified: "), "{certificate}");
            let origin = "seed: chosen by the organiser; no public beacon\n";
            assert!(certificate.ends_with(origin), "{certificate}");
        }
        site.succeed(&format!("tournament close {game}"));
        let to = site.bots.path().join(format!("export-{game}"));
        let export = format!("tournament export {game} --records --out");
        done(&site.command(&site.organiser, &export).arg(&to).output().unwrap());
        let stdout = support::succeed(&["verify", to.to_str().unwrap()]);
        assert!(stdout.contains("matches follow from the published seed"), "{stdout}");
        let last = support::files(&to.join("records")).pop().unwrap();
        let last = last.strip_prefix(&to).unwrap();
        tamper(&to, &format!("was played with {key} = "), |copy| {
            let record = copy.join(last);
            let text = fs::read_to_string(&record).unwrap();
            if key == "board" {
                let from = "\"board\":\"pole\"";
                let to = "\"board\":\"przyklad\"";
                let (from, to) = if text.contains(from) { (from, to) } else { (to, from) };
                return rewrite(&record, from, to);
            }
            let place = text.find("\"chips\":").unwrap();
            let digit = place + text[place..].find(|c: char| c.is_ascii_digit()).unwrap();
            let other = if text[digit..].starts_with('1') { "3" } else { "1" };
            reseal(&record, &format!("{}{other}{}", &text[..digit], &text[digit + 1..]));
        });
    }
}

/// Closes the tournament and checks everything that it publishes.
fn a_closed_tournament_is_checked(site: &Site) {
    let closed = site.succeed("tournament close cup");
    assert!(closed.contains(VALUE) && closed.contains("its seed was"), "{closed}");
    let stdout = site.succeed("tournament check cup --records");
    assert!(stdout.contains("6 matches derived again from the published seed"), "{stdout}");
    assert!(stdout.contains("the seeds in 6 records"), "{stdout}");
    assert!(stdout.starts_with("edition 3: "), "the official one: {stdout}");
    for edition in [1, 2] {
        let stdout = site.succeed(&format!("tournament check cup --records --edition {edition}"));
        assert!(stdout.contains("the seeds in 6 records"), "{stdout}");
    }
    let tournament = site.json("tournament show cup");
    assert_eq!(
        (&tournament["beacon"]["value"], &tournament["beacon"]["first_edition"]),
        (&json!(VALUE), &json!(3))
    );
    let audit = site.succeed("audit cup");
    assert!(audit.contains("tournament beacon"), "{audit}");

    let export = |edition: u32| {
        let to = site.bots.path().join(format!("export-{edition}"));
        let words = format!("tournament export cup --records --edition {edition} --out");
        done(&site.command(&site.organiser, &words).arg(&to).output().unwrap());
        to
    };
    let official = export(3);
    for path in [official.clone(), official.join("records")] {
        let stdout = support::succeed(&["verify", path.to_str().unwrap()]);
        assert!(stdout.contains("6 matches follow from the published seed"), "{stdout}");
        let origin = format!(
            "seed: keyed with the public beacon \"Bitcoin block 900000 hash\", value \"{VALUE}\""
        );
        assert!(stdout.contains(&origin), "{stdout}");
    }
    no_tampering_passes(&official);
    no_result_is_changed(&official);
    no_beacon_is_avoided(&export(2));
}

/// Copies an export, changes the copy, and expects that verification reports `part`.
fn tamper(export: &Path, part: &str, change: impl FnOnce(&Path)) {
    let copy = export.with_file_name("tampered");
    let mut files = vec![PathBuf::from("tournament.json"), PathBuf::from("matches.jsonl")];
    let records = support::files(&export.join("records"));
    files.extend(records.iter().map(|path| path.strip_prefix(export).unwrap().to_owned()));
    fs::create_dir_all(copy.join("records")).unwrap();
    for file in &files {
        fs::copy(export.join(file), copy.join(file)).unwrap();
    }
    change(&copy);
    for more in [&[][..], &["--json"]] {
        let output = support::run(&[&["verify", copy.to_str().unwrap()][..], more].concat());
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{part}: {stdout}");
        assert!(stdout.contains(part), "{stdout} lacks {part:?}");
    }
    fs::remove_dir_all(copy).unwrap();
}

/// Changes a file that is one JSON object.
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut object: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut object);
    fs::write(path, format!("{object:#}\n")).unwrap();
}

/// Changes a line of the matches.
fn edit_match(export: &Path, number: usize, change: impl FnOnce(&mut Value)) {
    let path = export.join("matches.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let mut line = serde_json::from_str(&lines[number]).unwrap();
    change(&mut line);
    lines[number] = line.to_string();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// Puts another seed into a record, and recomputes its seal.
fn reseed(record: &Path, seed: &str) {
    let text = fs::read_to_string(record).unwrap();
    let place = text.find("\"seed\":\"").unwrap() + 8;
    reseal(record, &format!("{}{seed}{}", &text[..place], &text[place + 64..]));
}

/// Replaces a part of the first line of a record.
fn rewrite(record: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(record).unwrap();
    let changed = text.replacen(from, to, 1);
    assert_ne!(text, changed, "{from} is in its first line");
    reseal(record, &changed);
}

/// Writes a record with a recomputed seal.
fn reseal(record: &Path, text: &str) {
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let seal = blake3::hash(&text.as_bytes()[..last]).to_hex();
    let place = text.rfind("\"seal\":\"").unwrap() + 8;
    fs::write(record, format!("{}{seal}{}", &text[..place], &text[place + 64..])).unwrap();
}

/// Results agree with their records, and records with the plan.
fn no_result_is_changed(export: &Path) {
    let record = |export: &Path| export.join("records/000004.jsonl");
    let reason = "match 4: its record gives the ";
    tamper(export, &format!("{reason}scores"), |copy| {
        edit_match(copy, 4, |line| line["scores"] = json!([[9], [9]]));
    });
    tamper(export, &format!("{reason}forfeits"), |copy| {
        edit_match(copy, 4, |line| line["forfeits"][0] = json!("clock"));
    });
    tamper(export, &format!("{reason}bad replies"), |copy| {
        edit_match(copy, 4, |line| line["bad_answers"][1] = json!(1));
    });
    tamper(export, &format!("{reason}transcript"), |copy| {
        edit_match(copy, 4, |line| line["transcript"] = json!("5e".repeat(32)));
    });
    tamper(export, "match 4 was played with move_limit = ", |copy| {
        rewrite(&record(copy), "\"move_limit\":\"500ms\"", "\"move_limit\":\"600ms\"");
    });
    tamper(export, "match 4 was played with the game package gomoku of digest 5e", |copy| {
        rewrite(&record(copy), "\"game\":\"gomoku\"", "\"game\":\"gomoku\",\"package\":\"5e\"");
    });
    tamper(export, "match 4 was played with the clock", |copy| {
        rewrite(&record(copy), "\"margin\":\"20ms\"", "\"margin\":\"30ms\"");
    });
}

/// An edition that depends on the organiser's seed alone is not accepted as the final one: the
/// edition before the beacon's, and one with the beacon removed or postponed.
fn no_beacon_is_avoided(export: &Path) {
    let edit = |copy: &Path, change: &dyn Fn(&mut Value)| {
        edit(&copy.join("tournament.json"), |file| change(file));
    };
    let early = "edition 2 comes before edition ";
    tamper(export, &format!("{early}3"), |_| {});
    tamper(export, &format!("{early}99"), |copy| {
        edit(copy, &|file| file["beacon"]["first_edition"] = json!(99));
    });
    tamper(export, "has no value, so the organiser chose the seed", |copy| {
        edit(copy, &|file| {
            file["beacon"]["value"] = Value::Null;
            file["beacon"]["first_edition"] = Value::Null;
        });
    });
    tamper(export, "the settings name the beacon ", |copy| {
        edit(copy, &|file| file["beacon"] = Value::Null);
    });
    tamper(export, ", tournament.json has ", |copy| {
        edit(copy, &|file| file["beacon"]["name"] = json!("another"));
    });
    tamper(export, "whose right spelling is ", |copy| {
        edit(copy, &|file| file["beacon"]["value"] = json!("1A17D"));
    });
}

fn no_tampering_passes(export: &Path) {
    let other = "5e".repeat(32);
    let record = |export: &Path, number: u32| export.join(format!("records/{number:06}.jsonl"));
    let reason = format!("match 1 has the seed {other}, the published seed gives ");
    tamper(export, &reason, |copy| reseed(&record(copy, 1), &other));
    tamper(export, "match 2 ", |copy| {
        fs::copy(record(copy, 3), record(copy, 2)).unwrap();
    });
    tamper(export, "no match of this number", |copy| {
        fs::copy(record(copy, 3), record(copy, 6)).unwrap();
    });
    let reason = "the committed seed and the beacon give";
    tamper(export, reason, |copy| {
        edit(&copy.join("tournament.json"), |file| file["beacon"]["value"] = json!("1a17e"));
    });
    tamper(export, reason, |copy| {
        edit(&copy.join("tournament.json"), |file| file["beacon"] = Value::Null);
    });
    tamper(export, reason, |copy| {
        edit(&copy.join("tournament.json"), |file| file["source"]["seed"] = json!(other));
    });
    for key in ["seed", "seed_hash"] {
        tamper(export, "that was published at creation", |copy| {
            edit(&copy.join("tournament.json"), |file| file[key] = json!(other));
        });
    }
    // A forger can change the seed of the edition and all that follows from it, but not the hash.
    // The seed decides which match is the first of the bot that is renamed.
    let matches = fs::read_to_string(export.join("matches.jsonl")).unwrap();
    let first = matches.lines().position(|line| line.contains("\"ada\"")).unwrap();
    tamper(export, &format!("match {first}: it is exported with"), |copy| {
        edit(&copy.join("tournament.json"), |file| {
            let name = &mut file["source"]["bots"][0]["name"];
            assert_eq!(*name, json!("ada"));
            *name = json!("another");
        });
    });
    let reason =
        format!("match 4: it is exported with the seed {other}, the published seed gives ");
    tamper(export, &reason, |copy| edit_match(copy, 4, |line| line["seed"] = json!(other)));
    tamper(export, "match 4: it is exported with the seed", |copy| {
        edit_match(copy, 4, |line| line["deal"] = json!(99));
    });
    tamper(export, "match 5: it is exported with", |copy| {
        edit_match(copy, 5, |line| line["seats"].as_array_mut().unwrap().reverse());
    });
    tamper(export, "match 5 is missing", |copy| {
        let path = copy.join("matches.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().take(5).collect();
        fs::write(path, lines.join("\n") + "\n").unwrap();
    });
}
