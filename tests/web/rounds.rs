//! The rounds of tournaments as pages, as JSON, as reports, and as commands print them: all show
//! the same.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use serde_json::{Value, json};

use crate::browser::{Browser, rows, text};
use crate::support::service::done;
use crate::support::shown::shown;
use crate::support::up::Up;

/// Bots and their behaviour. Those that exit lose to the others.
const BOTS: [(&str, &str, u32); 5] = [
    ("ada", "honest", 0),
    ("bob", "exit", 2),
    ("cyd", "honest", 0),
    ("dan", "honest", 0),
    ("eve", "exit", 4),
];

/// Starts everything and makes the bots.
fn open() -> (Up, Browser, Vec<String>) {
    let up = Up::start(2);
    let bots = BOTS.map(|(name, mode, at)| up.bots.built_rascal(name, mode, at, ""));
    let browser = Browser::new(up.http);
    (up, browser, bots.into())
}

/// Creates a tournament of gomoku with these lines and these bots.
fn create(up: &Up, name: &str, lines: &str, bots: &[String]) {
    let first = format!("name = \"{name}\"\ngame = \"gomoku\"\nrerun = \"manual\"\n");
    up.create(&format!("{first}{lines}[submissions]\npreflight = false\n"));
    for bot in bots {
        done(&up.command(&format!("submit {name} --house")).arg(bot).output().unwrap());
    }
}

fn get(browser: &Browser, path: &str) -> Value {
    serde_json::from_str(&browser.page(&format!("/api/v1/tournaments/{path}"))).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

/// The names of the bots of these rows.
fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["bot"].as_str().unwrap()).collect()
}

/// Compares the bots and the points of each meeting with its matches.
fn check_matches(up: &Up, meetings: &[Value]) {
    for meeting in meetings {
        let bots = list(meeting, "bots");
        let matches = list(meeting, "matches");
        assert_eq!(matches.is_empty(), bots.len() == 1, "only a bye has no match: {meeting}");
        let mut points: HashMap<String, f64> = HashMap::new();
        for name in matches {
            let played = &up.json(&format!("match {}", shown(name)))[0];
            let seats = names(list(played, "seats")).into_iter();
            let score = |seat: usize| played["scores"][seat][0].as_i64().unwrap();
            let won = [score(0) - score(1), score(1) - score(0)].map(|lead| match lead.signum() {
                1 => 1.0,
                0 => 0.5,
                _ => 0.0,
            });
            for (bot, won) in seats.zip(won) {
                *points.entry(bot.to_owned()).or_default() += won;
            }
        }
        for bot in bots.iter().filter(|_| !matches.is_empty()) {
            let of_matches = points.remove(bot["bot"].as_str().unwrap());
            assert!(of_matches.is_some(), "{bot} plays in its matches: {meeting}");
            if !bot["points"].is_null() {
                assert_eq!(bot["points"].as_f64(), of_matches, "{meeting}");
            }
        }
        assert!(points.is_empty(), "{meeting} has matches of others: {points:?}");
    }
}

/// Compares the commands with the JSON.
fn check_command(up: &Up, words: &str, rounds: &Value) {
    let lines = up.json(&format!("tournament rounds {words}"));
    let printed = |key: &str| -> Vec<Value> {
        lines.iter().filter_map(|line| line.get(key)).cloned().collect()
    };
    assert_eq!(&printed("standing"), list(rounds, "standings"), "{words}");
    assert_eq!(&printed("round"), list(rounds, "rounds"), "{words}");
    for (line, stage) in printed("stage").iter().zip(list(rounds, "stages")) {
        for key in ["stage", "kind", "state", "bots", "advance", "advanced", "rounds"] {
            assert_eq!(line[key], stage[key], "{words}: {key}");
        }
        assert_eq!(line["edition"], rounds["edition"]);
    }
    let table = up.succeed(&format!("tournament rounds {words}"));
    for row in list(rounds, "standings") {
        let name = row["bot"].as_str().unwrap();
        assert!(table.split_whitespace().any(|word| word == name), "{name}: {table}");
    }
}

/// The points, Buchholz and Sonneborn–Berger scores that follow from the first rounds.
fn tie_breaks(rounds: &[Value]) -> BTreeMap<String, [f64; 3]> {
    let mut meetings: Vec<(String, Option<String>, f64)> = Vec::new();
    for meeting in rounds.iter().flat_map(|round| list(round, "meetings")) {
        let bots = list(meeting, "bots");
        let name = |bot: &Value| bot["bot"].as_str().unwrap().to_owned();
        for (index, bot) in bots.iter().enumerate() {
            let other = bots.get(1 - index).map(name);
            meetings.push((name(bot), other, bot["points"].as_f64().unwrap()));
        }
    }
    let mut points: BTreeMap<String, f64> = BTreeMap::new();
    for (bot, _, won) in &meetings {
        *points.entry(bot.clone()).or_default() += won;
    }
    let of_bot = |bot: &String| {
        let own = meetings.iter().filter(|(name, ..)| name == bot);
        let mut scores = [points[bot], 0.0, 0.0];
        for (_, other, won) in own {
            let strength = points[other.as_ref().unwrap_or(bot)];
            scores[1] += strength;
            scores[2] += strength * won;
        }
        scores
    };
    points.keys().map(|bot| (bot.clone(), of_bot(bot))).collect()
}

#[test]
fn a_swiss_is_shown_round_by_round() {
    let (up, browser, bots) = open();
    create(&up, "cup", "[schedule]\nkind = \"swiss\"\nrounds = 3\n", &bots);
    let early = browser.get("/api/v1/tournaments/cup/rounds");
    assert_eq!(early.status, 409, "there is no edition yet");
    up.play("cup");
    assert!(browser.page("/t/cup").contains("href=\"/t/cup/rounds\">Rounds<"));
    let last = get(&browser, "cup/rounds");
    assert_eq!((&last["round"], &last["counted_rounds"]), (&json!(3), &json!(3)));
    let stage = &last["stages"][0];
    assert_eq!((&stage["kind"], &stage["state"]), (&json!("swiss"), &json!("over")));
    assert_eq!((&stage["bots"], &stage["advance"]), (&json!(5), &Value::Null));
    // Each request lists one round.
    let rounds: Vec<_> = (1..=3).map(|number| listed_round(&browser, number)).collect();
    assert_eq!(list(&last, "rounds"), &rounds[2..]);
    for round in &rounds {
        assert_eq!(round["over"], true);
        let meetings = list(round, "meetings");
        let sizes: Vec<_> = meetings.iter().map(|meeting| list(meeting, "bots").len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
        check_matches(&up, meetings);
    }
    // The last standings are the leaderboard.
    let ranks = |rows: &[Value]| -> BTreeMap<String, Value> {
        rows.iter().map(|row| (shown(&row["bot"]), row["rank"].clone())).collect()
    };
    assert_eq!(ranks(list(&last, "standings")), ranks(&up.json("ranking cup")));
    for number in 1..=3 {
        let words = format!("cup --round {number}");
        let after = get(&browser, &format!("cup/rounds?round={number}"));
        assert_eq!(after["counted_rounds"], json!(number));
        let mut expected = tie_breaks(&rounds[..number]);
        for row in list(&after, "standings") {
            let numbers =
                ["points", "buchholz", "sonneborn_berger"].map(|key| row[key].as_f64().unwrap());
            assert_eq!(Some(numbers), expected.remove(&shown(&row["bot"])), "{row}");
        }
        check_command(&up, &words, &after);
        check_swiss_page(&browser, number, &after);
    }
    check_report(&up, &browser, &last);
    check_without_report(&up, &browser, &bots);
    for (query, status, message) in [
        ("round=4", 404, "There is no round 4."),
        ("round=0", 404, "There is no round 0."),
        ("stage=2", 404, "Tournament cup has no stage 2."),
        ("stage=0", 404, "Tournament cup has no stage 0."),
        ("edition=9", 404, "Tournament cup has no edition 9."),
    ] {
        let response = browser.get(&format!("/t/cup/rounds?{query}"));
        assert_eq!(response.status, status, "{query}");
        assert!(text(&response.body).contains(message), "{query}: {}", response.body);
    }
    let bracket = browser.get("/t/cup/bracket");
    assert!(bracket.body.contains("cup is not a knockout, so it has no bracket"));
    up.close();
}

/// The only round that is listed if this one is selected.
fn listed_round(browser: &Browser, number: usize) -> Value {
    let rounds = get(browser, &format!("cup/rounds?round={number}"));
    assert_eq!(rounds["stages"][0]["begun_rounds"], 3);
    let [round] = &list(&rounds, "rounds")[..] else { panic!("{rounds}") };
    assert_eq!((&rounds["round"], &round["round"]), (&json!(number), &json!(number)));
    round.clone()
}

/// Compares the page of a round with the JSON.
fn check_swiss_page(browser: &Browser, number: usize, rounds: &Value) {
    let page = browser.page(&format!("/t/cup/rounds?round={number}"));
    let standings: Vec<_> =
        rows(&page, "standings").into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(standings, names(list(rounds, "standings")));
    let meetings = list(&rounds["rounds"][0], "meetings");
    let pairings = rows(&page, "pairings");
    assert_eq!(pairings.len(), meetings.len());
    for (row, meeting) in pairings.iter().zip(meetings) {
        let bots = names(list(meeting, "bots"));
        assert_eq!(row[0], bots[0]);
        assert_eq!(row[2], *bots.get(1).unwrap_or(&"bye"));
        for name in list(meeting, "matches") {
            let path = format!("/t/{}", shown(name).replace('/', "/matches/"));
            assert!(page.contains(&format!("href=\"{path}\"")), "{path}");
        }
    }
    for (rel, other) in [("prev", number - 1), ("next", number + 1)] {
        let link = format!("rel=\"{rel}\" href=\"?edition=1&amp;stage=1&amp;round={other}\"");
        assert_eq!(page.contains(&link), (1..=3).contains(&other), "{link}: {page}");
    }
}

/// Compares the report of a Swiss with its standings.
fn check_report(up: &Up, browser: &Browser, rounds: &Value) {
    let report = up.succeed("tournament rounds cup --trf");
    let download = browser.download("/t/cup/rounds.trf");
    assert_eq!(download.body, report);
    let name = "attachment; filename=\"cup-1-stage-1.trf\"";
    assert_eq!(download.headers["content-disposition"], name);
    let players: Vec<_> = report.lines().filter(|line| line.starts_with("001 ")).collect();
    assert_eq!(players.len(), BOTS.len(), "{report}");
    // The columns are those of the format, counted from 1: 15 name, 81 points, 86 place.
    let mut places: Vec<(u32, String, f64)> = players
        .iter()
        .map(|line| {
            let place = line[85..89].trim().parse().unwrap();
            (place, line[14..47].trim().to_owned(), line[80..84].trim().parse().unwrap())
        })
        .collect();
    places.sort_by_key(|(place, ..)| *place);
    let rank = |row: &Value| row["rank"].as_u64().unwrap();
    for ((place, bot, points), row) in places.iter().zip(list(rounds, "standings")) {
        assert_eq!((bot, points), (&shown(&row["bot"]), &row["points"].as_f64().unwrap()));
        assert!(u64::from(*place) >= rank(row), "{report}");
    }
    assert!(report.contains("\nXXR 3\n"), "{report}");
}

/// TRF16 has no meetings of two games, so there is no report and no link to one.
fn check_without_report(up: &Up, browser: &Browser, bots: &[String]) {
    let link = "/rounds.trf?edition=1&amp;stage=1";
    assert!(browser.page("/t/cup/rounds").contains(link));
    create(up, "double", "[schedule]\nkind = \"swiss\"\ngames = 2\nrounds = 1\n", &bots[..2]);
    up.play("double");
    let page = browser.page("/t/double/rounds");
    assert!(!page.contains("rounds.trf"), "{page}");
    assert_eq!(rows(&page, "pairings").len(), 1);
    let response = browser.get("/t/double/rounds.trf");
    assert_eq!(response.status, 404);
    let message = "only a Swiss of single games can be reported";
    assert!(text(&response.body).contains(message), "{}", response.body);
}

#[test]
fn stages_are_shown_one_by_one() {
    let (up, browser, bots) = open();
    let lines = "[[stage]]\nkind = \"swiss\"\nrounds = 2\nadvance = 4\n\
                 [[stage]]\nkind = \"round_robin\"\nsides = \"both\"\nadvance = 2\n\
                 [[stage]]\nkind = \"knockout\"\nbest_of = 2\n";
    create(&up, "cup", lines, &bots);
    up.succeed("tournament start cup");
    let early = get(&browser, "cup/rounds?stage=1");
    assert_eq!(early["stages"][0]["bots"], 5);
    assert_eq!((&early["stages"][1]["bots"], &early["stages"][2]["bots"]), (&json!(4), &json!(2)));
    up.wait_for("cup", 1);
    check_stages(&up, &browser, 1);
    // The matches of another edition are numbered in another order: those of unchanged bots are
    // not played again.
    let changed = fs::read_to_string(format!("{}/bot.toml", bots[0])).unwrap();
    let changed = changed.replace("\"honest\", \"0\"", "\"exit\", \"3\"");
    fs::write(format!("{}/bot.toml", bots[0]), changed).unwrap();
    done(&up.command("submit cup --house").arg(&bots[0]).output().unwrap());
    up.play("cup");
    check_stages(&up, &browser, 2);
    check_stages(&up, &browser, 1);
    for (path, message) in [
        ("bracket?stage=1", "Stage 1 of cup is not a knockout, so it has no bracket"),
        ("rounds.trf?stage=3", "Stage 3 is a knockout, and TRF16 reports only Swiss"),
        ("rounds?stage=2&round=1", "A round_robin has one round"),
    ] {
        let response = browser.get(&format!("/t/cup/{path}"));
        assert!(response.body.contains(message), "{path}: {}", response.body);
    }
    assert!(browser.page("/t/cup/rounds.trf?stage=1").contains("012 cup, edition 2, stage 1\n"));
    up.close();
}

/// Compares the three stages of an edition with each other and with its leaderboard.
fn check_stages(up: &Up, browser: &Browser, edition: u32) {
    let stage = |number: u32| get(browser, &format!("cup/rounds?edition={edition}&stage={number}"));
    let [swiss, league, finals] = [1, 2, 3].map(stage);
    let by_default = get(browser, &format!("cup/rounds?edition={edition}"));
    assert_eq!(by_default, finals, "the last stage is the default");
    for (number, (kind, bots)) in
        [("swiss", 5), ("round_robin", 4), ("knockout", 2)].iter().enumerate()
    {
        let stage = &finals["stages"][number];
        assert_eq!((&stage["kind"], &stage["bots"]), (&json!(kind), &json!(bots)));
        assert_eq!(stage["state"], "over");
    }
    let mut played = 0;
    for (number, (one, next)) in (1..).zip([(&swiss, &league), (&league, &finals)]) {
        let advanced = list(&one["stages"][number - 1], "advanced");
        let marked: Vec<_> =
            list(one, "standings").iter().filter(|row| row["advanced"] == true).collect();
        let mut advanced: Vec<_> = advanced.iter().map(shown).collect();
        let mut marked: Vec<_> = marked.iter().map(|row| shown(&row["bot"])).collect();
        let mut field: Vec<_> =
            list(next, "standings").iter().map(|row| shown(&row["bot"])).collect();
        for names in [&mut advanced, &mut marked, &mut field] {
            names.sort();
        }
        assert_eq!((&advanced, &marked), (&field, &field), "stage {number}");
    }
    let swiss_start = get(browser, &format!("cup/rounds?edition={edition}&stage=1&round=1"));
    for rounds in [&swiss_start, &swiss, &finals] {
        for round in list(rounds, "rounds") {
            let meetings = list(round, "meetings");
            check_matches(up, meetings);
            played += meetings.iter().map(|one| list(one, "matches").len()).sum::<usize>();
        }
    }
    assert_eq!(list(&league, "rounds").len(), 0);
    let matches = |row: &Value| row["matches"].as_u64().unwrap();
    assert!(list(&league, "standings").iter().all(|row| matches(row) == 6), "{league}");
    let newest = up.json("tournament show cup")[0]["editions"].clone();
    let of_edition = newest.as_array().unwrap().iter().find(|one| one["edition"] == edition);
    assert_eq!(of_edition.unwrap()["matches"].as_u64().unwrap(), played as u64 + 12);
    let bracket = get(browser, &format!("cup/bracket?edition={edition}"));
    assert_eq!(bracket["stage"], 3);
    let meeting = &finals["rounds"][0]["meetings"][0];
    assert_eq!(meeting["winner"], bracket["winner"]);
    assert_eq!(meeting["matches"], bracket["rounds"][0]["meetings"][0]["matches"]);
    assert_eq!(names(list(&finals, "standings"))[0], bracket["winner"]);
    let board = up.json(&format!("ranking cup --edition {edition}"));
    assert_eq!(board[0]["bot"], bracket["winner"]);
    assert_eq!(board[0]["columns"], league["columns"]);
    for (number, rounds) in (1..).zip([&swiss, &league, &finals]) {
        let words = format!("cup --edition {edition} --stage {number}");
        check_command(up, &words, rounds);
        let page = browser.page(&format!("/t/cup/rounds?edition={edition}&stage={number}"));
        let standings: Vec<_> =
            rows(&page, "standings").into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(standings, names(list(rounds, "standings")));
        assert_eq!(page.matches("aria-current=\"page\"").count(), 2, "its tab and its stage");
    }
    let page = browser.page(&format!("/t/cup/rounds?edition={edition}"));
    assert!(text(&page).contains("Winner:"), "{page}");
}

#[test]
fn gauntlets_and_ladders_show_means_and_ratings() {
    let (up, browser, bots) = open();
    let panel = "[schedule]\nkind = \"gauntlet\"\npanel = [\"ada\", \"bob\"]\n";
    create(&up, "trial", panel, &bots);
    create(&up, "ladder", "[schedule]\nkind = \"ladder\"\nrounds = 2\n", &bots);
    create(&up, "league", "", &bots[..2]);
    for tournament in ["trial", "ladder", "league"] {
        up.succeed(&format!("tournament start {tournament}"));
    }
    for tournament in ["trial", "ladder"] {
        up.wait_for(tournament, 1);
    }
    let gauntlet = get(&browser, "trial/rounds");
    assert_eq!((&gauntlet["round"], list(&gauntlet, "rounds").len()), (&Value::Null, 0));
    let standings = list(&gauntlet, "standings");
    let board = up.json("ranking trial");
    for row in standings {
        let place = board.iter().find(|place| place["bot"] == row["bot"]).unwrap();
        assert_eq!((&row["rank"], &row["matches"]), (&place["rank"], &place["matches"]));
        let difference = row["mean"].as_f64().unwrap() - place["mean"].as_f64().unwrap();
        assert!(difference.abs() < 1e-9, "{row}");
        let is_panel = ["ada", "bob"].contains(&row["bot"].as_str().unwrap());
        assert_eq!(row["group"], if is_panel { "panel" } else { "candidate" });
    }
    check_command(&up, "trial", &gauntlet);
    assert_eq!(rows(&browser.page("/t/trial/rounds"), "standings").len(), BOTS.len());

    let ladder = get(&browser, "ladder/rounds?round=1");
    let last = get(&browser, "ladder/rounds");
    for round in [&ladder, &last].into_iter().flat_map(|rounds| list(rounds, "rounds")) {
        check_matches(&up, list(round, "meetings"));
    }
    assert_ne!(last["standings"], ladder["standings"], "each round has its own standings");
    for rounds in [&ladder, &last] {
        let ratings = list(rounds, "standings").iter().map(|row| row["rating"].as_f64().unwrap());
        assert!(ratings.clone().is_sorted_by(|one, other| one >= other), "{rounds}");
    }
    check_command(&up, "ladder --round 1", &ladder);
    check_command(&up, "ladder", &last);
    assert_eq!(rows(&browser.page("/t/ladder/rounds"), "pairings").len(), 3);

    let response = browser.get("/t/league/rounds");
    assert!(response.body.contains("The schedule of league has no rounds"), "{}", response.body);
    assert!(!browser.page("/t/league").contains("/t/league/rounds"));
    up.close();
}

#[test]
fn frozen_rounds_are_hidden_as_pages_as_json_and_as_reports() {
    let (up, browser, bots) = open();
    for (name, schedule) in [
        ("cup", "kind = \"swiss\"\nrounds = 1"),
        ("trial", "kind = \"gauntlet\"\npanel = [\"ada\"]"),
    ] {
        up.create(&format!(
            "name = \"{name}\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[schedule]\n{schedule}\n\
             [submissions]\npreflight = false\nfreeze = \"2020-01-01T00:00:00Z\"\n"
        ));
        for bot in &bots[..2] {
            done(&up.command(&format!("submit {name} --house")).arg(bot).output().unwrap());
        }
        up.play(name);
    }
    let mut admin = browser.clone();
    admin.log_in(&up.admin());
    let paths = ["/t/cup/rounds", "/t/cup/rounds.trf", "/api/v1/tournaments/cup/rounds"];
    for path in paths {
        for query in ["", "?edition=1&stage=1&round=1"] {
            let response = browser.get(&format!("{path}{query}"));
            assert_eq!(response.status, 403, "{path}{query}");
            assert!(response.body.contains("leaderboards of cup are frozen since"), "{path}");
        }
        assert_eq!(admin.get(path).status, 200, "{path} for the administrator");
    }
    // Who plays in a Swiss follows from results, and in a gauntlet from its bots.
    let seats =
        |tournament: &str| list(&get(&browser, &format!("{tournament}/matches/0")), "seats").len();
    assert_eq!((seats("cup"), seats("trial")), (0, 2));
    up.succeed("tournament close cup");
    for path in paths {
        assert_eq!(browser.get(path).status, 200, "{path} after the freeze");
    }
    up.close();
}
