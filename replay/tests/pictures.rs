//! Pictures of matches: what their steps say, that their keys tell them apart, and that they are
//! small.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use arbiter_games::picture::{Key, Picture};
use arbiter_games::{EntrantName, Games, MatchState, Micros, Params, Seat, Seed, tricks};
use arbiter_replay::{
    Header, LineBlocks, Reader, ReplayEvent, ReplayObserver, Steps, draw, replay_with, steps,
};
use proptest::prelude::{ProptestConfig, any, proptest};
use support::{names, params, play, reply, transcript};

/// The documents' examples and other short matches, each with the reply after its end.
const TOLD: [(&str, &str); 9] = [
    ("bitwa-example", "= 1 0 0 1 1 1"),
    ("bitwa-killed", ""),
    ("blackjack-official", ""),
    ("gomoku-black", ""),
    ("gomoku-choice-white", ""),
    ("gomoku-example", ""),
    ("tricks-cards", ""),
    ("wojna-forfeits", ""),
    ("wojna-war", "= pass"),
];

/// The size of a step's markup in a small match.
const SMALL: usize = 12 << 10;

fn all_steps(record: &[u8]) -> Steps {
    steps(&Games::built_in(), LineBlocks::new(record), 0..usize::MAX, Reader::default()).unwrap()
}

/// Parameters of short matches with all that a picture can show.
fn short_params() -> Vec<Params> {
    let json = |name: &str| match name {
        "wojna" => r#"{"deals":3,"deck":"1-5*3"}"#,
        "bitwa" => r#"{"board":"przyklad","rounds":12}"#,
        "tricks" => r#"{"tables":4}"#,
        _ => "{}",
    };
    Games::built_in().iter().map(|game| params(game, json(game.as_str()))).collect()
}

/// Looks at the picture after every event of a replay.
#[derive(Default)]
struct Looker {
    names: Vec<EntrantName>,
    seen: HashMap<Key, Vec<Picture>>,
}

impl Looker {
    fn look(&mut self, game: &dyn MatchState) {
        let view = game.view();
        let viewers = [None].into_iter().chain(Seat::all(self.names.len()).map(Some));
        let pictures = viewers.map(|viewer| view.picture(&self.names, viewer));
        let pictures: Vec<_> = pictures.collect();
        for picture in &pictures {
            let caption = &picture.caption;
            assert!(caption.ends_with('.') && caption.len() > 10, "{caption:?}");
            assert!(!draw(picture).markup.0.is_empty());
        }
        let key = view.picture_key();
        let expected = self.seen.entry(key).or_insert_with(|| pictures.clone());
        let html = |pictures: &[Picture]| draw(&pictures[0]).markup.0;
        assert!(
            pictures == *expected,
            "the key {key:?} has two pictures: {}\n\nand {}",
            html(expected),
            html(&pictures)
        );
    }
}

impl ReplayObserver for Looker {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        self.names = header.names().into_iter().map(EntrantName::from).collect();
        self.look(game);
    }

    fn on_event(&mut self, _: Micros, _: ReplayEvent<'_>, game: &dyn MatchState) {
        self.look(game);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_picture_has_a_caption_and_equal_keys_mean_equal_pictures(number in any::<u64>()) {
        for params in short_params() {
            let seed = Seed::of_text(&format!("{} {number}", params.game()));
            let mut dice = seed.dice(77);
            let names = names(*params.seats().end());
            let (record, _) =
                play(&params, seed, &names, |message, view| reply(&mut dice, message, view));
            replay_with(&Games::built_in(), &record[..], &mut Looker::default()).unwrap();
        }
    }

    #[test]
    fn steps_of_small_matches_are_small(number in any::<u64>()) {
        for params in short_params() {
            let seed = Seed::of_text(&format!("{} {number}", params.game()));
            let mut dice = seed.dice(77);
            let names = names(*params.seats().end());
            let (record, _) =
                play(&params, seed, &names, |message, view| reply(&mut dice, message, view));
            let steps = all_steps(&record);
            for step in &steps.drawn {
                let html = step.render(&steps.overview.names).into_string();
                assert!(html.len() < SMALL, "{} bytes: {html}", html.len());
                assert!(!html.contains("style="), "pages allow no inline style: {html}");
            }
        }
    }
}

#[test]
fn a_step_of_a_hundred_tables_fits_into_64_kib() {
    let params = params(&tricks::game(), "{}");
    let mut dice = Seed([3; 32]).dice(1);
    let names = names(2);
    let (record, _) =
        play(&params, Seed([9; 32]), &names, |message, view| reply(&mut dice, message, view));
    let steps = all_steps(&record);
    let sizes =
        steps.drawn.iter().map(|step| step.render(&steps.overview.names).into_string().len());
    assert!(sizes.max().unwrap() < 64 << 10);
    let last = steps.drawn.last().unwrap().render(&steps.overview.names).into_string();
    assert_eq!(last.matches("Over: ").count(), 100, "{last}");
    let empty = ["hand seat1\"><em>", "hand seat2\"><em>"];
    assert!(!empty.iter().any(|hand| last.contains(hand)), "no empty hands: {last}");
}

/// The captions of a match, with the chapters before their steps.
fn told(steps: &Steps) -> String {
    let mut text = String::new();
    for step in &steps.drawn {
        for (chapter, _) in steps.overview.chapters.iter().filter(|(_, first)| *first == step.index)
        {
            writeln!(text, "# {chapter}").unwrap();
        }
        writeln!(text, "{}", step.picture.caption).unwrap();
    }
    text
}

#[test]
fn captions_tell_the_documents_examples() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captions");
    let written = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut different = Vec::new();
    for (name, rest) in TOLD {
        let file = format!("{name}.txt");
        let (record, _) = transcript(&file, rest);
        let actual = told(&all_steps(&record));
        if fs::read_to_string(golden.join(&file)).ok().as_ref() != Some(&actual) {
            fs::write(written.join(&file), &actual).unwrap();
            different.push(file);
        }
    }
    assert_eq!(different, [""; 0], "other captions; the present ones are in {}", written.display());
}
