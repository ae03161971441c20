//! What owners, organisers and others may see and do in a real tournament.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address, wait_until};
use support::{Bots, arbiter};

/// Expects exit code `code` and a short message that contains all of `says`.
fn refused(output: &Output, code: i32, says: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for part in says {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// The objects that a command printed, which must have succeeded.
fn objects(output: &Output) -> Vec<Value> {
    done(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A coordinator, a worker, and users.
struct Site {
    database: Database,
    _services: Vec<Service>,
    server: String,
    http: SocketAddr,
    organiser: String,
    ada: String,
    bob: String,
    bots: Bots,
}

impl Site {
    fn open() -> Self {
        let bots = Bots::new();
        let database = Database::start(Durability::Unsynced);
        let [organiser, ada, bob, worker] =
            ["organiser", "player", "player", "worker"].map(|role| database.token(role));
        let address = free_address();
        let log = bots.path().join("coordinator.log");
        let http = free_address();
        let mut command = database.coordinator(address);
        command.args(["--http", &http.to_string()]);
        let mut coordinator = Service::start(&mut command, &log);
        coordinator.wait_for_log("serving");
        let server = format!("http://{address}");
        let mut command = arbiter();
        command.args(["worker", "--slots", "1", "--sandbox", "off", "--name", "cellar"]);
        command.args(["--coordinator", &server, "--spool"]).arg(bots.path().join("spool"));
        let log = bots.path().join("worker.log");
        let worker = Service::start(command.env("ARBITER_TOKEN", worker), &log);
        let services = vec![coordinator, worker];
        Self { database, _services: services, server, http, organiser, ada, bob, bots }
    }

    fn command(&self, token: &str, arguments: &[&str]) -> Command {
        let mut command = arbiter();
        command.args(arguments).env("ARBITER_SERVER", &self.server).env("ARBITER_TOKEN", token);
        command
    }

    /// Runs a command with a token.
    fn run(&self, token: &str, arguments: &[&str]) -> Output {
        self.command(token, arguments).output().unwrap()
    }

    /// Runs a command with the organiser's token. It must succeed.
    fn succeed(&self, arguments: &[&str]) -> String {
        done(&self.run(&self.organiser, arguments))
    }

    /// Creates a tournament of gomoku with these entry rules.
    fn tournament(&self, rules: &str) {
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\nrerun = \"manual\"\n\
             [submissions]\npreflight = false\n{rules}"
        );
        let file = self.bots.file("cup.toml", &text);
        self.succeed(&["tournament", "create", &file]);
    }

    fn submit(&self, token: &str, path: &str) -> Output {
        self.run(token, &["submit", "cup", path])
    }

    /// Plays an edition to its end.
    fn play(&self) {
        self.succeed(&["tournament", "start", "cup"]);
        self.succeed(&["tournament", "watch", "cup"]);
    }

    /// Changes the entry rules directly in the database, instead of waiting for their times.
    #[tokio::main(flavor = "current_thread")]
    async fn rule(&self, key: &str, moment: &str) {
        let mut connection = self.connect().await;
        let statement = "
            UPDATE tournaments SET settings = jsonb_set(settings, ARRAY['submissions', $1],
                to_jsonb(to_char(now() + $2::interval, 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')))";
        sqlx::raw_sql("SET timezone = 'UTC'").execute(&mut connection).await.unwrap();
        let query = sqlx::query(statement).bind(key).bind(moment);
        query.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Changes the records directly in the database.
    #[tokio::main(flavor = "current_thread")]
    async fn change_records(&self, statement: &'static str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn connect(&self) -> PgConnection {
        let options = self.database.postgres.options("postgres");
        PgConnection::connect_with(&options).await.unwrap()
    }

    /// The HTTP status of a page for the holder of a token.
    fn status(&self, token: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nCookie: arbiter={token}\r\n\r\n").unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let text = String::from_utf8_lossy(&response);
        text.split(' ').nth(1).unwrap().to_owned()
    }
}

/// The seat of a player's bot, from 0, in the JSON of a match.
fn seat_of(shown: &Value, bot: &str) -> usize {
    let is_of_bot =
        |seat: &Value| seat["bot"].as_str().unwrap().split('/').next_back() == Some(bot);
    shown["seats"].as_array().unwrap().iter().position(is_of_bot).unwrap()
}

/// The record of a match as the holder of a token sees it.
fn record(site: &Site, token: &str, id: &str) -> String {
    let record = done(&site.run(token, &["match", id, "--record", "-"]));
    let path = site.bots.file("shown.jsonl", &record);
    done(&support::run(&["verify", &path]));
    record
}

#[test]
fn evidence_is_shown_to_its_owner_and_to_organisers() {
    let site = Site::open();
    site.tournament("");
    let loud = site.bots.rascal("loud", "stderr", 1, "stderr = true\n");
    let dying = site.bots.rascal("dying", "segv", 3, "stderr = true\n");
    done(&site.submit(&site.ada, &loud));
    done(&site.submit(&site.bob, &dying));
    site.play();
    let id = "cup/0";

    let log = objects(&site.run(&site.bob, &["log", "cup", "dying", "--json"]));
    assert_eq!(log.len(), 2);
    for line in &log {
        assert_eq!(line["forfeit"], "gone");
        let detail = line["evidence"]["detail"].as_str().unwrap();
        assert!(detail.contains("SIGSEGV"), "{detail}");
        assert!(line["evidence"]["wall_us"].is_i64() && line["evidence"]["cpu_us"].is_i64());
    }
    refused(
        &site.run(&site.ada, &["log", "cup", "dying"]),
        3,
        &["dying belongs to another player"],
    );

    let details = |token: &str| objects(&site.run(token, &["match", id, "--json"])).remove(0);
    let ada = details(&site.ada);
    let bob = details(&site.bob);
    let organiser = details(&site.organiser);
    let seat = seat_of(&ada, "dying");
    assert_eq!(
        (&ada["evidence"][seat], &details("")["evidence"][seat]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(ada["forfeits"][seat], "gone", "public data");
    assert!(bob["evidence"][seat]["detail"].as_str().unwrap().contains("SIGSEGV"));
    assert_eq!(organiser["evidence"], bob["evidence"]);
    assert_eq!((&ada["worker"], &bob["worker"]), (&Value::Null, &Value::Null));
    assert_eq!(organiser["worker"], "cellar");

    // The part of the record that a reader sees passes verification.
    let all = record(&site, &site.organiser, id);
    let adas = record(&site, &site.ada, id);
    let bobs = record(&site, &site.bob, id);
    assert!(all.contains("\"stderr\"") && all.contains("SIGSEGV"));
    assert!(adas.contains("\"stderr\"") && !adas.contains("SIGSEGV"));
    assert!(!bobs.contains("\"stderr\"") && bobs.contains("SIGSEGV"));
    let stderr = done(&site.run(&site.ada, &["match", id, "--stderr"]));
    assert!(stderr.contains("bytes before"), "{}", stderr.len());
    assert_eq!(done(&site.run(&site.bob, &["match", id, "--stderr"])), "");
    // Everyone may see the replay, without what bots printed.
    assert_eq!(done(&site.run("", &["match", id, "--stderr"])), "");

    rehearse(&site, id, &loud, seat_of(&ada, "loud") + 1);
}

/// The same bot gives the same replies again, and a changed bot does not.
fn rehearse(site: &Site, id: &str, bot: &str, seat: usize) {
    let seat = seat.to_string();
    let repro = |more: &[&str]| {
        let call = ["repro", id, "--seat", &seat, "--sandbox", "off"];
        site.run(&site.ada, &[&call[..], more].concat())
    };
    let stdout = done(&repro(&["--bot", bot]));
    assert!(stdout.ends_with("replies, all the same\n"), "{stdout}");
    let plies = objects(&repro(&["--bot", bot, "--json"]));
    assert!(plies.iter().all(|ply| ply["same"] == json!(true)));
    let changed = site.bots.rascal("changed", "garbage", 2, "");
    let output = repro(&["--bot", &changed]);
    let text = String::from_utf8_lossy(&output.stdout);
    refused(&output, 1, &["the bot fails where it replied in the record (reply 3"]);
    let marks: Vec<_> = text.lines().take(3).map(|line| line.chars().next().unwrap()).collect();
    assert_eq!(marks, ['@', '-', '+'], "{text}");
    refused(&repro(&["--bot", "/nowhere"]), 2, &["/nowhere", "No such file"]);
    let call = ["repro", id, "--seat", "3", "--bot", bot, "--sandbox", "off"];
    refused(&site.run(&site.ada, &call), 2, &["--seat", "2 seats"]);
}

#[test]
fn entry_closes_and_submissions_are_limited() {
    let site = Site::open();
    site.tournament("per_hour = 2\n");
    let one = site.bots.rascal("one", "honest", 0, "");
    done(&site.submit(&site.ada, &one));
    done(&site.submit(&site.ada, &one));
    let change = |text: &str| fs::write(Path::new(&one).join("note"), text).unwrap();
    change("a");
    done(&site.submit(&site.ada, &one));
    change("b");
    refused(&site.submit(&site.ada, &one), 1, &["2 versions an hour from an owner", "UTC"]);

    // The owner may resubmit a withdrawn bot, even unchanged.
    change("a");
    let withdraw = |token: &str| site.run(token, &["bots", "cup", "--withdraw", "player/one"]);
    done(&withdraw(&site.ada));
    let standing = || objects(&site.run(&site.ada, &["bots", "cup", "--json"])).remove(0);
    assert_eq!(
        (&standing()["withdrawn"], &standing()["owned_by_caller"]),
        (&json!(true), &json!(true))
    );
    // Bob's bot of the same name is another bot.
    assert!(done(&site.submit(&site.bob, &one)).starts_with("player-2/one version 1"));
    assert_eq!(standing()["withdrawn"], true);
    done(&site.submit(&site.ada, &one));
    assert_eq!((&standing()["withdrawn"], &standing()["version"]), (&json!(false), &json!(2)));

    site.rule("closes", "-1 second");
    let house = site.bots.rascal("house", "honest", 0, "");
    refused(&site.submit(&site.ada, &one), 1, &["entry to cup closed at", "UTC"]);
    refused(&site.submit(&site.organiser, &house), 1, &["entry to cup closed at"]);
    refused(&withdraw(&site.ada), 1, &["entry to cup closed at"]);
    site.succeed(&["submit", "cup", &house, "--house"]);
    done(&withdraw(&site.organiser));
}

#[test]
fn a_frozen_leaderboard_does_not_change() {
    let site = Site::open();
    site.tournament("");
    let path = |name: &str| site.bots.rascal(name, "honest", 0, "");
    done(&site.submit(&site.ada, &path("one")));
    done(&site.submit(&site.bob, &path("two")));
    site.play();
    site.rule("freeze", "0 seconds");
    let before = done(&site.run("", &["ranking", "cup", "--json"]));
    done(&site.submit(&site.bob, &path("three")));
    site.play();

    let public = |arguments: &[&str]| site.run(&site.ada, arguments);
    assert_eq!(done(&public(&["ranking", "cup", "--json"])), before);
    assert_eq!(done(&site.run("", &["ranking", "cup", "--json"])), before);
    assert!(site.succeed(&["ranking", "cup", "--json"]).contains("three"));
    let frozen = &["the leaderboards of cup are frozen since", "UTC", "organisers"][..];
    refused(&public(&["ranking", "cup", "--edition", "2"]), 3, frozen);
    refused(&public(&["tournament", "check", "cup"]), 3, frozen);
    refused(&public(&["ranking", "cup", "--bot", "three"]), 2, &["there is no bot `three`"]);
    let place = done(&public(&["ranking", "cup", "--bot", "one", "--json"]));
    assert!(!place.contains("three") && !place.contains("\"edition\":2"), "{place}");
    let export = site.bots.path().join("export");
    let export =
        ["tournament", "export", "cup", "--edition", "2", "--out", export.to_str().unwrap()];
    refused(&public(&export), 3, frozen);
    let tournament: Value =
        serde_json::from_str(&done(&public(&["tournament", "show", "cup", "--json"]))).unwrap();
    let official: Vec<_> = tournament["editions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edition| &edition["official"])
        .collect();
    assert_eq!(official, [&json!(false), &json!(true)]);

    let log = objects(&public(&["log", "cup", "one", "--json"]));
    let newest: Vec<_> = log.iter().map(|line| line["score"].as_array().unwrap().len()).collect();
    // The two matches that both editions have are listed once.
    assert_eq!((newest.len(), newest[0], newest[newest.len() - 1]), (4, 0, 1));
    let id = log[0]["match"].as_str().unwrap();
    assert!(id.starts_with("cup/"));
    let details = objects(&public(&["match", id, "--json"])).remove(0);
    assert_eq!((&details["scores"], &details["transcript"]), (&json!([[], []]), &Value::Null));
    refused(&public(&["match", id, "--record", "-"]), 3, frozen);
    assert_ne!(site.succeed(&["match", id, "--record", "-"]), "");

    check_frozen_site(&site);

    // After the end of the tournament the result is public.
    site.succeed(&["tournament", "close", "cup"]);
    assert!(done(&public(&["ranking", "cup", "--json"])).contains("three"));
    assert_ne!(done(&public(&["match", id, "--record", "-"])), "");
}

/// An exported site of the frozen tournament `cup` tells so on every page.
fn check_frozen_site(site: &Site) {
    site.rule("closes", "0 seconds");
    let folder = site.bots.path().join("site");
    let export = ["tournament", "export", "cup", "--site", folder.to_str().unwrap()];
    done(&site.run("", &export));
    let read = |page: &str| fs::read_to_string(folder.join(format!("{page}.html"))).unwrap();
    let pages = ["index", "bots", "head-to-head", "how-to-play", "about", "data", "matches/page-1"];
    for page in pages {
        let text = read(page);
        assert!(text.contains("Leaderboards are frozen since 20"), "{page}: {text}");
    }
    let index = read("index");
    for text in [
        "Edition 1, the official one",
        "the last edition that was complete before the freeze is official",
        "entry had closed at",
    ] {
        assert!(index.contains(text), "{text}: {index}");
    }
    assert!(read("about").contains("Entry deadline: 20"));
}

/// Who plays in a later round shows who won the rounds before.
#[test]
fn while_a_knockout_is_frozen_only_owners_see_who_plays() {
    let site = Site::open();
    let text = "name = \"cup\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[schedule]\n\
        kind = \"knockout\"\nseeding = \"entry\"\n[submissions]\npreflight = false\n";
    site.succeed(&["tournament", "create", &site.bots.file("cup.toml", text)]);
    // Numbers 1 and 4 meet in the first round, and 1 and 2 in the final.
    for (token, name, mode) in [
        (&site.bob, "one", "honest"),
        (&site.bob, "two", "honest"),
        (&site.bob, "three", "exit"),
        (&site.ada, "four", "exit"),
    ] {
        done(&site.submit(token, &site.bots.rascal(name, mode, 2, "")));
    }
    site.rule("freeze", "0 seconds");
    site.play();
    let [first_round, last] = ["cup/0", "cup/5"];
    let shown = |token: &str, id: &str| objects(&site.run(token, &["match", id, "--json"]));
    let seats = |token: &str, id: &str| shown(token, id)[0]["seats"].as_array().unwrap().len();
    let players = |id: &str| {
        let tokens = ["", &site.ada, &site.bob, &site.organiser];
        tokens.map(|token| seats(token, id))
    };
    assert_eq!(players(first_round), [0, 2, 2, 2]);
    assert_eq!(players(last), [0, 0, 2, 2]);
    let details = &shown("", last)[0];
    assert_eq!((&details["state"], &details["scores"]), (&json!("counted"), &json!([])));
    let text = done(&site.run("", &["match", last]));
    assert!(text.contains("who plays is hidden while the leaderboards are frozen"), "{text}");
    let rounds = |token: &str| site.run(token, &["tournament", "rounds", "cup"]);
    let frozen = &["the leaderboards of cup are frozen since", "UTC", "organisers"][..];
    refused(&rounds(""), 3, frozen);
    refused(&rounds(&site.bob), 3, frozen);
    assert!(done(&rounds(&site.organiser)).contains("cup/5"));
    site.succeed(&["tournament", "close", "cup"]);
    assert_eq!(players(last), [2; 4]);
    assert!(done(&rounds("")).contains("cup/5"));
}

#[test]
fn while_a_swiss_is_frozen_the_rounds_of_its_official_edition_are_shown() {
    let site = Site::open();
    let text = "name = \"cup\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[schedule]\n\
        kind = \"swiss\"\nrounds = 1\n[submissions]\npreflight = false\n";
    site.succeed(&["tournament", "create", &site.bots.file("cup.toml", text)]);
    let path = |name: &str| site.bots.rascal(name, "honest", 0, "");
    done(&site.submit(&site.ada, &path("one")));
    done(&site.submit(&site.bob, &path("two")));
    site.play();
    site.rule("freeze", "0 seconds");
    done(&site.submit(&site.bob, &path("three")));
    site.play();
    let rounds = |token: &str, more: &[&str]| {
        site.run(token, &[&["tournament", "rounds", "cup"], more].concat())
    };
    let shown = done(&rounds("", &[]));
    assert!(shown.starts_with("edition 1 of cup") && !shown.contains("three"), "{shown}");
    assert!(!done(&rounds("", &["--trf"])).contains("three"));
    let frozen = &["the leaderboards of cup are frozen since", "UTC", "organisers"][..];
    refused(&rounds(&site.bob, &["--edition", "2"]), 3, frozen);
    refused(&rounds(&site.bob, &["--edition", "2", "--trf"]), 3, frozen);
    assert!(done(&rounds(&site.organiser, &[])).starts_with("edition 2 of cup"));
    site.succeed(&["tournament", "close", "cup"]);
    assert!(done(&rounds("", &[])).starts_with("edition 2 of cup"));
}

/// Its pairs follow from the names of its bots and the published seed.
#[test]
fn the_schedule_of_a_closed_tournament_lists_its_real_pairs() {
    let site = Site::open();
    let names = ["one", "two", "three", "four", "five", "six", "seven"];
    let house = names.map(|name| site.bots.rascal(name, "honest", 0, ""));
    for (cup, schedule, matches) in [
        ("ring", "kind = \"round_robin\"\nopponents = 2", 14),
        ("draw", "kind = \"knockout\"\nbest_of = 2", 6),
    ] {
        let text = format!(
            "name = \"{cup}\"\ngame = \"gomoku\"\nseed = \"finals\"\nstate = \"none\"\n[schedule]\n\
             {schedule}\n[submissions]\npreflight = false\n[house]\nbots = {house:?}\n"
        );
        site.succeed(&["tournament", "create", &site.bots.file("cup.toml", &text)]);
        site.succeed(&["tournament", "start", cup]);
        site.succeed(&["tournament", "watch", cup]);
        site.succeed(&["tournament", "close", cup]);
        let export = site.bots.path().join(cup);
        site.succeed(&["tournament", "export", cup, "--out", export.to_str().unwrap()]);
        let played = fs::read_to_string(export.join("matches.jsonl")).unwrap();
        let played: Vec<Value> =
            played.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let listed = objects(&site.run("", &["tournament", "schedule", cup, "--json"]));
        assert_eq!(listed.len(), matches, "{cup}");
        for (number, (listed, played)) in (1..).zip(listed.iter().zip(&played)) {
            assert_eq!(listed["match"], number, "{cup}");
            let name = |bot: &Value| names[usize::try_from(bot.as_u64().unwrap()).unwrap() - 1];
            let bots: Vec<_> = listed["seats"].as_array().unwrap().iter().map(name).collect();
            let players = played["seats"].as_array().unwrap().iter();
            let players: Vec<_> = players.map(|seat| seat["bot"].as_str().unwrap()).collect();
            assert_eq!(bots, players, "{cup} {number}");
        }
    }
}

#[test]
fn a_cached_replay_is_shown_without_its_record_but_not_after_its_deletion() {
    let site = Site::open();
    site.tournament("");
    done(&site.submit(&site.ada, &site.bots.rascal("one", "honest", 0, "")));
    done(&site.submit(&site.bob, &site.bots.rascal("two", "honest", 0, "")));
    site.play();
    let status = |token: &str| site.status(token, "/t/cup/matches/0/steps?chunk=0");
    let statuses = || [&site.ada, &site.bob].map(|owner| status(owner));
    assert_eq!(status(&site.ada), "200");
    // Each owner sees other lines, so only one of the two replays is cached.
    site.change_records(
        "CREATE TEMP TABLE kept AS SELECT tournament, number FROM records;
         DELETE FROM records;
         INSERT INTO records (tournament, number, bytes)
         SELECT tournament, number, 'no record' FROM kept",
    );
    assert_eq!(statuses(), ["200", "500"]);
    site.change_records("DELETE FROM records");
    assert_eq!(statuses(), ["404", "404"]);
}

#[test]
fn matches_of_a_worker_can_be_declared_void() {
    let site = Site::open();
    site.tournament("stand_down_percent = 50\nstand_down_after = 2\n");
    done(&site.submit(&site.ada, &site.bots.rascal("one", "honest", 0, "")));
    done(&site.submit(&site.bob, &site.bots.rascal("two", "exit", 0, "")));
    site.play();

    // A bot that forfeits too many matches is suspended, and its owner sees why.
    let notice =
        &["suspended: it forfeited 2 of 2 matches in edition 1", "submit a better version"];
    refused(&site.run(&site.bob, &["log", "cup", "two"]), 0, notice);
    let standing = |token: &str| objects(&site.run(token, &["bots", "cup", "--json"])).remove(1);
    assert_eq!(standing("")["suspended"], true);
    assert_eq!(
        (&standing("")["reason"], &standing(&site.ada)["reason"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(standing(&site.bob)["reason"], "it forfeited 2 of 2 matches in edition 1");
    refused(&site.run(&site.organiser, &["tournament", "start", "cup"]), 1, &["too few bots"]);
    let reinstate = ["bots", "cup", "--reinstate", "two"];
    refused(&site.run(&site.bob, &reinstate), 3, &["role organiser"]);
    site.succeed(&reinstate);
    assert_eq!(standing("")["suspended"], false);

    let void = ["tournament", "void", "cup", "--worker", "cellar", "--json"];
    refused(&site.run(&site.ada, &void), 3, &["role organiser"]);
    let preview = objects(&site.run(&site.organiser, &void)).remove(0);
    assert_eq!((&preview["applied"], &preview["matches"]), (&json!(false), &json!(2)));
    assert_eq!(preview["first"], json!(["cup/0", "cup/1"]));
    assert_eq!(
        preview["places"][0],
        json!({"bot": "player/one", "rank": 1, "rank_without": 1,
        "score": ["4"], "score_without": ["0"]})
    );
    let apply = [&void[..], &["--apply", "--reason", "its clock ran"]].concat();
    assert_eq!(objects(&site.run(&site.organiser, &apply))[0]["applied"], true);
    assert_eq!(objects(&site.run(&site.organiser, &void))[0]["matches"], 0);
    refused(
        &site.run(&site.organiser, &apply),
        1,
        &["no match is selected, or all are already void", "no match was changed"],
    );
    let unknown = ["tournament", "void", "cup", "--worker", "attic"];
    refused(&site.run(&site.organiser, &unknown), 2, &["no worker `attic`; known workers: cellar"]);
    // The name of its token names it as well.
    let by_token = ["tournament", "void", "cup", "--worker", "worker", "--json"];
    assert_eq!(objects(&site.run(&site.organiser, &by_token)).len(), 1);
    site.succeed(&["workers", "suspend", "worker", "--reason", "its disk is broken"]);
    let shown = site.succeed(&["workers"]);
    assert!(shown.contains("cellar is suspended") && shown.contains("its disk"), "{shown}");
    site.succeed(&["workers", "reinstate", "worker"]);
}

#[test]
fn a_directory_of_bots_is_synchronised() {
    let site = Site::open();
    site.tournament("");
    let bots = Bots::new();
    let sync = |more: &[&str]| {
        let directory = bots.path().to_str().unwrap();
        site.run(&site.ada, &[&["sync", "cup", directory], more].concat())
    };
    refused(&sync(&[]), 2, &["no bot folders found", "nothing is withdrawn"]);
    bots.rascal("one", "honest", 0, "");
    let two = bots.rascal("two", "honest", 0, "");
    done(&site.submit(&site.bob, &site.bots.rascal("other", "honest", 0, "")));
    let stdout = done(&sync(&["--dry-run"]));
    assert_eq!(stdout, "player/one would enter\nplayer/two would enter\n");
    assert_eq!(
        done(&sync(&[])),
        "player/one entered with version 1\nplayer/two entered with version 1\n"
    );
    assert_eq!(done(&sync(&[])), "", "nothing changed");
    fs::write(Path::new(&two).join("note"), "better").unwrap();
    let hidden = bots.path().join(".git");
    fs::create_dir(&hidden).unwrap();
    assert_eq!(done(&sync(&[])), "player/two updated with version 2\n");

    // Bob's bot has the same short name.
    let other = bots.rascal("other", "honest", 0, "");
    assert_eq!(done(&sync(&[])), "player/other entered with version 1\n");
    fs::remove_dir_all(&other).unwrap();
    assert_eq!(done(&sync(&[])), "player/other withdrawn\n");

    // A broken bot delays only the withdrawal of bots that are gone.
    let away = site.bots.path().join("away");
    fs::rename(&two, &away).unwrap();
    let broken = bots.path().join("broken");
    fs::create_dir(&broken).unwrap();
    bots.rascal("three", "honest", 0, "");
    let output = sync(&[]);
    refused(&output, 1, &["skipped broken", "1 folder was skipped"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "player/three entered with version 1\n");
    fs::remove_dir(&broken).unwrap();
    assert_eq!(done(&sync(&["--keep"])), "");
    assert_eq!(done(&sync(&[])), "player/two withdrawn\n", "bots of other owners do not change");

    let mut command = site.command(&site.ada, &["sync", "cup", bots.path().to_str().unwrap()]);
    let log = site.bots.path().join("sync.log");
    let mut watch = Service::start(command.args(["--watch", "--every", "1s", "--json"]), &log);
    fs::rename(&away, &two).unwrap();
    watch.wait_for_log("\"bot\":\"player/two\",\"change\":\"back\",\"version\":2");
    let folder = Path::new(&two);
    fs::write(folder.join("note"), "still better").unwrap();
    watch.wait_for_log("\"bot\":\"player/two\",\"change\":\"changed\",\"version\":3");
    fs::remove_dir_all(folder).unwrap();
    wait_until("it is withdrawn", || {
        watch.log().contains("\"bot\":\"player/two\",\"change\":\"withdrawn\"")
    });
    watch.signal(Signal::INT);
    assert_eq!(watch.wait(), Some(0), "{}", watch.log());
}
