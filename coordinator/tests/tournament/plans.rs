//! The plans of editions: presets, dependencies between matches, and lots.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arbiter_coordinator::db::matches::Match;
use arbiter_coordinator::tournament::TournamentFile;
use arbiter_games::{Games, Micros, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::limits::Bytes;
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Certificate, Plan};
use serde_json::json;

use crate::fixture::{
    create_tournament, listed_matches, open_edition, planned_matches, preset, start_tournament,
    tournament_file,
};
use crate::support::Database;

/// A preset has the rules of the game's document. A file without settings has the same rules.
#[test]
fn presets_have_the_official_rules() {
    for game in Games::built_in().iter().cloned() {
        let preset = preset(&game);
        // A table of wojna has four seats.
        let house_bots = if game == wojna::game() { 4 } else { 3 };
        assert_eq!(preset.house.bots.len(), house_bots, "{game}");
        let official = TournamentFile::official(game.as_str(), &game);
        let house = preset.house.clone();
        assert_eq!(preset, TournamentFile { house, ..official }, "{game}");
    }
    let preset_json = |game: arbiter_games::Game| preset(game).to_json();
    let wojna = preset_json(wojna::game());
    assert_eq!(wojna["params"]["deals"], 40);
    assert_eq!(wojna["params"]["clock"], "30000/1000/3000/100");
    assert_eq!(wojna["schedule"], json!({ "kind": "foursomes" }));
    let bitwa = preset_json(bitwa::game());
    assert_eq!(bitwa["limits"]["memory"], "400 MB");
    assert_eq!(bitwa["schedule"]["boards"].as_array().unwrap().len(), 8);
    assert_eq!(bitwa["schedule"]["sides"], "random");
    assert_eq!(bitwa["params"]["bank"], "3min");
    let tricks = preset_json(tricks::game());
    assert_eq!(
        (&tricks["params"]["tables"], &tricks["schedule"]["legs"]),
        (&json!(100), &json!(1))
    );
    let blackjack = preset_json(blackjack::game());
    assert_eq!(blackjack["schedule"], json!({ "kind": "episodes", "episodes": 25 }));
    assert_eq!(
        (&blackjack["params"]["rounds"], &blackjack["params"]["chips"]),
        (&json!(5), &json!(200))
    );
    assert_eq!(blackjack["params"]["move_limit"], "2s");
    assert_eq!(preset(blackjack::game()).limits.memory, Bytes::megabytes(256));
    let gomoku = preset_json(gomoku::game());
    assert_eq!(
        (&gomoku["schedule"]["sides"], &gomoku["state"]),
        (&json!("both"), &json!("tournament"))
    );
    assert_eq!(gomoku["params"]["move_limit"], "500ms");
}

/// Checks that the matches of an edition keep the guarantees of its schedule.
fn check_guarantees(file: &TournamentFile, bots: usize, planned: &[Match]) {
    if file.game().episodes.is_none() {
        let seed = arbiter_games::Seed::of_text("stage");
        let Plan::Matches(plan) = file.schedule.plan(bots, seed).unwrap() else {
            panic!("expected a list of matches")
        };
        assert_eq!(plan.total(), planned.len() as u64);
        let seats: Vec<Vec<u16>> = planned
            .iter()
            .map(|planned| planned.seats.0.iter().map(|bot| bot.0.try_into().unwrap()).collect())
            .collect();
        let certificate = Certificate::count(bots, plan.seats(), &[], seats).unwrap();
        certificate.prove(&plan.claim()).unwrap();
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
        let tournament = create_tournament(&database, &file, 13).await;
        let edition = open_edition(&queue, &tournament).await.unwrap();
        let planned = planned_matches(&database, edition.id).await;
        assert_eq!(edition.matches, i64::try_from(planned.len()).unwrap());
        assert_eq!(edition.open_ended, game == blackjack::game());
        let listed = listed_matches(&database, &tournament, edition.id).await;
        check_guarantees(&file, 13, &listed);
        let numbers: Vec<_> = planned.iter().map(|planned| planned.number.0).collect();
        assert!(numbers.into_iter().eq(0..edition.matches));
        // Each match has a different deal.
        let deals: BTreeSet<_> = planned.iter().map(|planned| planned.seed_key).collect();
        assert_eq!(deals.len(), planned.len());
        let boards: BTreeMap<_, usize> =
            planned.iter().fold(BTreeMap::new(), |mut boards, planned| {
                *boards.entry(planned.board).or_default() += 1;
                boards
            });
        let expected: Vec<_> = match game.as_str() {
            "bitwa" => (0..8).map(|board| (Some(board), 78)).collect(),
            _ => vec![(None, planned.len())],
        };
        assert_eq!(boards.into_iter().collect::<Vec<_>>(), expected);
        let have_state = planned.iter().all(|planned| planned.state_from.is_some());
        assert_eq!(have_state, game == gomoku::game());
    }
}

/// Two tournaments with the same seed and the same order of bots have the same matches.
#[tokio::test]
async fn plans_depend_on_the_seed_and_the_bots_only() {
    let database = Database::new().await;
    for (game, lines) in [
        (wojna::game(), "[schedule]\ngames = 30"),
        (bitwa::game(), ""),
        (gomoku::game(), ""),
        (blackjack::game(), "[schedule]\nepisodes = 3"),
    ] {
        let mut plans = Vec::new();
        for (name, seed) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let mut file = tournament_file(&game, lines);
            file.name = format!("{game}-{name}");
            file.seed = Some(arbiter_games::Seed::of_text(seed));
            let (tournament, edition) = start_tournament(&database, &file, 9).await;
            plans.push(listed_matches(&database, &tournament, edition.id).await);
        }
        assert_eq!(plans[0], plans[1], "{game}");
        assert_ne!(plans[0], plans[2], "{game}");
    }
}

/// In wojna, both matches of a pair have the same deal.
#[tokio::test]
async fn matches_of_a_pair_share_their_deal_in_paired_games() {
    let database = Database::new().await;
    let lines = "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"";
    let (_, edition) = start_tournament(&database, &tournament_file(wojna::game(), lines), 4).await;
    let planned = planned_matches(&database, edition.id).await;
    assert_eq!(planned.len(), 12);
    for pair in planned.chunks(2) {
        assert_eq!(pair[0].seed_key, pair[1].seed_key);
        let reversed: Vec<_> = pair[1].seats.0.iter().rev().copied().collect();
        assert_eq!(pair[0].seats.0, reversed);
    }
    let deals: BTreeSet<_> = planned.iter().map(|planned| planned.seed_key).collect();
    assert_eq!(deals.len(), 6);
}

/// The stored order of lots: pairs of an earlier and a later lot.
async fn order(database: &Database) -> BTreeSet<(i64, i64)> {
    let rows: Vec<(i64, i64)> = sqlx::query_as("SELECT before, after FROM lot_order")
        .fetch_all(&database.pool)
        .await
        .unwrap();
    let row_count = rows.len();
    let order: BTreeSet<_> = rows.into_iter().collect();
    assert_eq!(order.len(), row_count);
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
        let file = tournament_file(&game, lines);
        assert_eq!(file.state, state);
        let (_, edition) = start_tournament(&database, &file, 7).await;
        let mut last = HashMap::new();
        let mut expected = BTreeSet::new();
        for planned in planned_matches(&database, edition.id).await {
            let mut group: Vec<_> = planned.seats.0.clone();
            group.sort_unstable();
            let state_from: Vec<_> = planned
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
            expected.extend(state_from.iter().flatten().map(|before| (*before, planned.number.0)));
            assert_eq!(planned.state_from, Some(state_from));
        }
        assert!(expected.iter().all(|(before, after)| before < after));
        assert_eq!(order(&database).await, expected);
        let blockers = "SELECT sum(blockers)::bigint FROM lots";
        assert_eq!(database.number(blockers).await, i64::try_from(expected.len()).unwrap());
        assert_eq!(database.number("SELECT max(count)::bigint FROM lots").await, 1);
    }
}

#[tokio::test]
async fn lots_last_some_seconds() {
    let database = Database::new().await;
    let mut file = tournament_file(tricks::game(), "");
    for (name, expected, min_lots) in
        [("short", 1, 64), ("usual", 2500, 130), ("long", 60_000, 780)]
    {
        file.name = name.to_owned();
        file.expected = Some(Micros::from_millis(expected));
        let (tournament, edition) = start_tournament(&database, &file, 40).await;
        assert_eq!(edition.matches, 780);
        let statement = "SELECT count(*) FROM lots WHERE tournament = $1";
        let query = sqlx::query_scalar(statement).bind(tournament.id.0);
        let count: i64 = query.fetch_one(&database.pool).await.unwrap();
        assert!((min_lots..min_lots + min_lots / 8).contains(&count), "{name}: {count} lots");
    }
}
