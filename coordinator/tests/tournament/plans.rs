//! The plans of editions: official tournaments, and dependencies between matches.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arbiter_coordinator::db::matches::Match;
use arbiter_coordinator::tournament::TournamentFile;
use arbiter_games::{Games, Micros, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::limits::Bytes;
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Certificate, Plan};
use serde_json::json;

use crate::fixture::{file, made, matches, open, preset, running};
use crate::support::Database;

/// The presets are what the documents of the games say, and what a file without settings means.
#[test]
fn presets_are_official() {
    for game in Games::built_in().iter().cloned() {
        let preset = preset(&game);
        // A table of wojna takes four.
        let house = if game == wojna::game() { 4 } else { 3 };
        assert_eq!(preset.house.len(), house, "{game}");
        let official = TournamentFile::official(game.as_str(), &game);
        let house = preset.house.clone();
        assert_eq!(preset, TournamentFile { house, ..official }, "{game}");
    }
    let of = |game: arbiter_games::Game| preset(game).to_json();
    let wojna = of(wojna::game());
    assert_eq!(wojna["params"]["deals"], 40);
    assert_eq!(wojna["params"]["clock"], "30000/1000/3000/100");
    assert_eq!(wojna["schedule"], json!({ "kind": "foursomes" }));
    let bitwa = of(bitwa::game());
    assert_eq!(bitwa["limits"]["memory"], "400 MB");
    assert_eq!(bitwa["schedule"]["boards"].as_array().unwrap().len(), 8);
    assert_eq!(bitwa["schedule"]["sides"], "random");
    assert_eq!(bitwa["params"]["bank"], "3min");
    let tricks = of(tricks::game());
    assert_eq!(
        (&tricks["params"]["tables"], &tricks["schedule"]["legs"]),
        (&json!(100), &json!(1))
    );
    let blackjack = of(blackjack::game());
    assert_eq!(blackjack["schedule"], json!({ "kind": "episodes", "episodes": 25 }));
    assert_eq!(
        (&blackjack["params"]["rounds"], &blackjack["params"]["chips"]),
        (&json!(5), &json!(200))
    );
    assert_eq!(blackjack["params"]["move_limit"], "2s");
    assert_eq!(preset(blackjack::game()).limits.memory, Bytes::megabytes(256));
    let gomoku = of(gomoku::game());
    assert_eq!(
        (&gomoku["schedule"]["sides"], &gomoku["state"]),
        (&json!("both"), &json!("tournament"))
    );
    assert_eq!(gomoku["params"]["move_limit"], "500ms");
}

/// Who plays whom in an edition, as its schedule promises.
fn certify(file: &TournamentFile, bots: usize, planned: &[Match]) {
    if file.game().episodes.is_none() {
        let seed = arbiter_games::Seed::of_text("stage");
        let Plan::Matches(promised) = file.schedule.plan(bots, seed).unwrap() else { panic!() };
        assert_eq!(promised.total(), planned.len() as u64);
        let seats: Vec<Vec<u16>> = planned
            .iter()
            .map(|planned| planned.seats.0.iter().map(|bot| bot.0.try_into().unwrap()).collect())
            .collect();
        let certificate = Certificate::count(bots, promised.seats(), &[], seats).unwrap();
        certificate.prove(&promised.claim()).unwrap();
        return;
    }
    assert_eq!(planned.len(), 25 * bots.div_ceil(4));
}

#[tokio::test]
async fn official_editions_are_planned_and_started() {
    let database = Database::new().await;
    let queue = database.queue();
    for game in Games::built_in().iter().cloned() {
        let mut file = preset(&game);
        file.seed = Some(arbiter_games::Seed::of_text("stage"));
        let tournament = made(&database, &file, 13).await;
        let edition = open(&queue, &tournament).await.unwrap();
        let planned = matches(&database, edition.id).await;
        assert_eq!(edition.matches, i64::try_from(planned.len()).unwrap());
        assert_eq!(edition.open_ended, game == blackjack::game());
        certify(&file, 13, &planned);
        let numbers: Vec<_> = planned.iter().map(|planned| planned.number.0).collect();
        assert!(numbers.into_iter().eq(0..edition.matches));
        // Each has its own deal.
        let deals: BTreeSet<_> = planned.iter().map(|planned| planned.seed_key).collect();
        assert_eq!(deals.len(), planned.len());
        let boards: BTreeMap<_, usize> = planned.iter().fold(BTreeMap::new(), |mut boards, one| {
            *boards.entry(one.board).or_default() += 1;
            boards
        });
        let expected: Vec<_> = match game.as_str() {
            "bitwa" => (0..8).map(|board| (Some(board), 78)).collect(),
            _ => vec![(None, planned.len())],
        };
        assert_eq!(boards.into_iter().collect::<Vec<_>>(), expected);
        let chained = planned.iter().all(|planned| planned.state_from.is_some());
        assert_eq!(chained, game == gomoku::game());
    }
}

/// Two tournaments with the same seed and bots in the same order are the same, match by match.
#[tokio::test]
async fn plans_are_a_function_of_seed_and_bots() {
    let database = Database::new().await;
    for (game, lines) in [
        (wojna::game(), "[schedule]\ngames = 30"),
        (bitwa::game(), ""),
        (gomoku::game(), ""),
        (blackjack::game(), "[schedule]\nepisodes = 3"),
    ] {
        let mut plans = Vec::new();
        for (name, seed) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let mut file = file(&game, lines);
            file.name = format!("{game}-{name}");
            file.seed = Some(arbiter_games::Seed::of_text(seed));
            let (_, edition) = running(&database, &file, 9).await;
            plans.push(matches(&database, edition.id).await);
        }
        assert_eq!(plans[0], plans[1], "{game}");
        assert_ne!(plans[0], plans[2], "{game}");
    }
}

/// Both matches of a pair of wojna are dealt the same cards.
#[tokio::test]
async fn matches_of_a_pair_share_their_deal_in_paired_games() {
    let database = Database::new().await;
    let lines = "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"";
    let (_, edition) = running(&database, &file(wojna::game(), lines), 4).await;
    let planned = matches(&database, edition.id).await;
    assert_eq!(planned.len(), 12);
    for pair in planned.chunks(2) {
        assert_eq!(pair[0].seed_key, pair[1].seed_key);
        let reversed: Vec<_> = pair[1].seats.0.iter().rev().copied().collect();
        assert_eq!(pair[0].seats.0, reversed);
    }
    let deals: BTreeSet<_> = planned.iter().map(|planned| planned.seed_key).collect();
    assert_eq!(deals.len(), 6);
}

/// The order of an edition's lots, as it is stored.
async fn order(database: &Database) -> BTreeSet<(i64, i64)> {
    let order: Vec<(i64, i64)> = sqlx::query_as("SELECT before, after FROM lot_order")
        .fetch_all(&database.pool)
        .await
        .unwrap();
    let number = order.len();
    let order: BTreeSet<_> = order.into_iter().collect();
    assert_eq!(order.len(), number);
    order
}

#[tokio::test]
async fn matches_wait_for_the_matches_whose_files_they_need() {
    for (state, game, lines) in [
        (StateScope::Tournament, gomoku::game(), ""),
        (StateScope::Pairing, gomoku::game(), "state = \"pairing\"\nschedule.legs = 2"),
        (StateScope::Tournament, wojna::game(), "state = \"tournament\""),
    ] {
        let database = Database::new().await;
        let file = file(&game, lines);
        assert_eq!(file.state, state);
        let (_, edition) = running(&database, &file, 7).await;
        let mut last = HashMap::new();
        let mut expected = BTreeSet::new();
        for planned in matches(&database, edition.id).await {
            let mut group: Vec<_> = planned.seats.0.clone();
            group.sort_unstable();
            let from: Vec<_> = planned
                .seats
                .0
                .iter()
                .map(|bot| {
                    let key = if state == StateScope::Pairing { group.clone() } else { vec![*bot] };
                    last.get(&(*bot, key.clone())).copied()
                })
                .collect();
            for bot in &planned.seats.0 {
                let key = if state == StateScope::Pairing { group.clone() } else { vec![*bot] };
                last.insert((*bot, key), planned.number.0);
            }
            expected.extend(from.iter().flatten().map(|before| (*before, planned.number.0)));
            assert_eq!(planned.state_from, Some(from));
        }
        assert!(expected.iter().all(|(before, after)| before < after));
        assert_eq!(order(&database).await, expected);
        let waits = "SELECT sum(blockers)::bigint FROM lots";
        assert_eq!(database.number(waits).await, i64::try_from(expected.len()).unwrap());
        assert_eq!(database.number("SELECT max(count)::bigint FROM lots").await, 1);
    }
}

/// Lots are long enough, and there are enough of them.
#[tokio::test]
async fn lots_last_some_seconds() {
    let database = Database::new().await;
    let mut file = file(tricks::game(), "");
    for (name, expected, lots) in [("short", 1, 64), ("usual", 2500, 130), ("long", 60_000, 780)] {
        file.name = name.to_owned();
        file.expected = Some(Micros::from_millis(expected));
        let (tournament, edition) = running(&database, &file, 40).await;
        assert_eq!(edition.matches, 780);
        let statement = "SELECT count(*) FROM lots l JOIN editions e ON e.id = l.edition
            WHERE e.tournament = $1";
        let query = sqlx::query_scalar(statement).bind(tournament.id.0);
        let found: i64 = query.fetch_one(&database.pool).await.unwrap();
        assert!((lots..lots + lots / 8).contains(&found), "{name}: {found} lots");
    }
}
