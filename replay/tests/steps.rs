//! Steps of replays: their pictures come from the rules, and the last step shows the result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_games::{Forfeit, Game, Games, Micros, Params, Score, Seat, SeatResult, Seed, gomoku};
use arbiter_replay::{ForfeitedSeat, Header, Line, Step, Steps, Transcript, Writer, steps, verify};
use proptest::prelude::{ProptestConfig, any, proptest};
use support::{SPENT, names, params, play, reply, transcript};

/// Every step of a record.
fn all_steps(record: &[u8]) -> Steps {
    steps(&Games::built_in(), record, 0..usize::MAX).unwrap()
}

/// A step as text.
fn html(steps: &Steps, step: &Step) -> String {
    step.render(&steps.overview.names).into_string()
}

/// The scores that a step shows.
fn scores(html: &str) -> Vec<Score> {
    let cells = html.split("data-score=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    let numbers = |cell: &str| cell.split(' ').map(|number| number.parse().unwrap()).collect();
    cells.map(|cell| Score(numbers(cell))).collect()
}

/// Parameters of short matches.
fn short_params(game: &Game) -> Params {
    let json = match game.as_str() {
        "wojna" => r#"{"deals":2,"deck":"1-5*4"}"#,
        "bitwa" => r#"{"board":"przyklad","rounds":12}"#,
        "tricks" => r#"{"tables":4}"#,
        _ => "{}",
    };
    params(game, json)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_last_step_shows_the_result_of_the_record(number in any::<u64>()) {
        for game in Games::built_in().iter() {
            let seed = Seed::of_text(&format!("{game} {number}"));
            let mut dice = seed.dice(77);
            let params = short_params(game);
            let names = names(*params.seats().end());
            let (record, standings) =
                play(&params, seed, &names, |message, view| reply(&mut dice, message, view));
            let steps = all_steps(&record);
            let expected: Vec<_> = standings.iter().map(|standing| standing.score.clone()).collect();
            let last = steps.drawn.last().unwrap();
            assert_eq!(scores(&html(&steps, last)), expected);
            assert_eq!(last.standings.as_ref(), Some(&standings));
            assert_eq!(steps.drawn.len(), steps.overview.total);
            assert!(steps.drawn.iter().enumerate().all(|(index, step)| step.index == index));
            assert!(steps.drawn.iter().rev().skip(1).all(|step| step.standings.is_none()));
            let forfeits = steps.drawn.iter().filter(|step| step.forfeit.is_some()).count();
            let forfeited_seats = standings.iter().filter(|standing| standing.forfeit.is_some()).count();
            assert!(forfeits >= forfeited_seats, "each forfeit is a step");
            assert!(steps.overview.chapters.iter().all(|(_, first)| *first < steps.overview.total));
        }
    }
}

#[test]
fn a_range_of_steps_equals_a_part_of_all_steps() {
    for game in Games::built_in().iter() {
        let seed = Seed::of_text(game.as_str());
        let mut dice = seed.dice(1);
        let params = short_params(game);
        let names = names(*params.seats().end());
        let (record, _) =
            play(&params, seed, &names, |message, view| reply(&mut dice, message, view));
        let whole = all_steps(&record);
        let middle = whole.overview.total / 2;
        let part = steps(&Games::built_in(), &record[..], middle..middle + 3).unwrap();
        assert_eq!(
            (part.overview.total, &part.overview.chapters),
            (whole.overview.total, &whole.overview.chapters)
        );
        let expected_steps = whole.drawn.iter().skip(middle).take(3);
        assert_eq!(part.drawn.len(), expected_steps.len());
        for (step, expected) in part.drawn.iter().zip(expected_steps) {
            assert_eq!(html(&part, step), html(&whole, expected));
        }
    }
}

#[test]
fn an_edited_record_has_no_steps() {
    let games = Games::built_in();
    let (record, _) = transcript("gomoku-example.txt", "");
    let text = String::from_utf8(record).unwrap();
    let edited = text.replace("\"(4,0)\"", "\"(4,1)\"");
    assert_ne!(edited, text);
    let steps_error = steps(&games, edited.as_bytes(), 0..9).unwrap_err();
    let verify_error = verify(&games, edited.as_bytes()).unwrap_err();
    assert_eq!(steps_error.to_string(), verify_error.to_string());
}

#[test]
fn gomoku_shows_the_stones_in_order() {
    let (record, standings) = transcript("gomoku-example.txt", "");
    let steps = all_steps(&record);
    assert_eq!(standings[0].score, Score(vec![2]));
    let captions: Vec<_> = steps.drawn.iter().map(|step| &step.picture.caption[..]).collect();
    assert_eq!(captions[0], "Opening: alpha is to put two black stones and a white one.");
    assert!(captions[1].starts_with("Swap: beta is to take black"), "{captions:?}");
    assert_eq!(captions[2], "Swap: alpha is to choose its colour.");
    assert_eq!(captions[3], "alpha is to move; 5 stones are on the board.");
    assert_eq!(captions.last(), Some(&"alpha has won."));
    let replies: Vec<_> = steps.drawn.iter().filter_map(|step| step.reply.as_deref()).collect();
    assert_eq!(replies[..3], ["(0,0)(14,14)(0,1)", "(1,0) (1,1)", "\"B\""]);
    let html = html(&steps, steps.drawn.last().unwrap());
    assert_eq!(html.matches(r#"<g class="stone black">"#).count(), 6);
    assert_eq!(html.matches(r#"<g class="stone white">"#).count(), 4);
    assert!(html.contains(r#"<text x="4" y="0">10</text><circle class="last" cx="4" cy="0""#));
    assert!(html.contains(r#"<line class="row" x1="0" y1="0" x2="4" y2="0">"#), "{html}");
    assert!(html.contains("alpha plays black"), "{html}");
    assert!(html.contains(r#"role="img" aria-label="alpha has won."><title>"#), "{html}");
}

#[test]
fn bitwa_shows_divisions_and_strengths() {
    let (record, _) = transcript("bitwa-example.txt", "= 1 0 0 1 1 1");
    let steps = all_steps(&record);
    let first = html(&steps, &steps.drawn[0]);
    assert!(first.contains(r#"viewBox="0 0 8 6""#));
    // The document's board has three units of strength 2 in each division.
    for (letter, units) in [('A', 3), ('a', 3), ('B', 3), ('b', 3)] {
        let text = format!(r#"<text class="letter" x="0.5" y="0.36">{letter}</text>"#);
        assert_eq!(first.matches(&text).count(), units, "{letter}");
    }
    assert_eq!(first.matches(r#"y="0.72">2</text>"#).count(), 12);
    assert_eq!(first.matches("M0,0h1v1h-1z").count(), 1, "the wall in the corner");
    let second = &steps.drawn[1];
    assert_eq!(second.reply.as_deref(), Some("= 1 5 1 -1 1 1"));
    let caption = "Round 1 of 100: alpha sends A to (5, 1), attacking enemies on the way.";
    assert_eq!(second.picture.caption, caption);
    assert!(html(&steps, second).contains(r#"<circle class="target" cx="5.5" cy="1.5""#));
    assert_eq!(steps.overview.chapters[1].0, "Round 2");
    assert!(second.clocks[0].left.unwrap() < Micros::from_millis(180_001));
}

#[test]
fn wojna_shows_piles_bids_and_wars() {
    let (record, _) = transcript("wojna-war.txt", "= pass");
    let steps = all_steps(&record);
    let captions = || steps.drawn.iter().map(|step| &step.picture.caption[..]);
    assert!(captions().any(|caption| caption.contains("war between")), "a caption announces a war");
    assert!(
        captions().any(|caption| caption.contains("takes")),
        "a caption announces the winner of a pot"
    );
    assert!(
        captions().any(|caption| caption.ends_with("bidding has ended.")),
        "a caption announces the end of bidding"
    );
    assert_eq!(captions().next_back(), Some("Deal 1 of 1 has ended."));
    let auction = steps.drawn.iter().find(|step| step.picture.caption.contains("auction 1:"));
    let html = html(&steps, auction.unwrap());
    assert_eq!(
        html.matches("card peeked").count(),
        steps.overview.names.len(),
        "each seat has a card"
    );
    assert!(html.contains("<th colspan=\"4\" scope=\"row\">Pot</th>"), "{html}");
    assert_eq!(steps.overview.chapters[0], ("Deal 1".to_owned(), 0));
}

#[test]
fn tricks_shows_every_table() {
    let (record, _) = transcript("tricks-whole.txt", "");
    let steps = all_steps(&record);
    let names = steps.overview.names.clone();
    let last = html(&steps, steps.drawn.last().unwrap());
    assert!(last.contains("are over"), "{last}");
    assert!(last.contains(&format!("<small>{} won</small>", names[0])), "the last trick is shown");
    let first = html(&steps, &steps.drawn[0]);
    let tables = first.matches("<td class=\"number\">18</td>").count();
    assert_eq!(first.matches("class=\"card ").count(), 18 * tables, "two hands of nine cards");
}

#[test]
fn blackjack_hides_the_dealers_second_card_until_all_have_acted() {
    let (record, standings) = transcript("blackjack-official.txt", "");
    let steps = all_steps(&record);
    let first = steps.drawn.iter().find(|step| step.picture.caption.contains("to act")).unwrap();
    assert_eq!(html(&steps, first).matches("face down").count(), 1);
    let last_step = steps.drawn.iter().find(|step| step.picture.caption.contains("is over"));
    let settled = html(&steps, last_step.unwrap());
    assert_eq!(settled.matches("face down").count(), 0);
    let dealer = ["2", "3", "7", "T"].map(|card| format!("<span class=\"card \">{card}</span>"));
    assert!(settled.contains(&dealer.concat()), "{settled}");
    let chips: Vec<_> = standings.iter().map(|standing| standing.score.0[0]).collect();
    let last = html(&steps, steps.drawn.last().unwrap());
    assert!(chips.iter().all(|chips| last.contains(&format!(">{chips}<"))), "{last}");
    assert_eq!(steps.overview.chapters.len(), 5);
}

#[test]
fn clocks_and_forfeits_are_shown_beside_the_board() {
    let names = names(2);
    let mut messages = 0;
    let params = params(&gomoku::game(), "{}");
    let (record, _) = play(&params, Seed([7; 32]), &names, |_, _| {
        messages += 1;
        if messages == 1 { Ok("<b>(7,7)".to_owned()) } else { Err(Forfeit::Gone) }
    });
    let steps = all_steps(&record);
    let step = &steps.drawn[1];
    assert_eq!(step.seat, Some(Seat::from_index(0)));
    assert!(step.forfeit.as_ref().unwrap().kind == Forfeit::Illegal, "{step:?}");
    assert_eq!(step.clocks[0].used, SPENT.wall);
    let html = html(&steps, step);
    assert!(html.contains("<code>&lt;b&gt;(7,7)</code>"), "replies are escaped: {html}");
    assert!(html.contains("last 2.5 ms, total 2.5 ms"), "{html}");
    assert!(html.contains("forfeits – illegal: its reply breaks the rules"), "{html}");
    assert!(html.contains("<dt>Limit</dt><dd>"), "{html}");
    let overview = &steps.overview;
    let seat = Seat::from_index(0);
    let forfeit = ForfeitedSeat { seat, kind: Forfeit::Illegal, step: 1 };
    assert_eq!(overview.forfeits[0], forfeit);
}

/// The record with one more line before the last one, and with recomputed hashes.
fn with_line(record: &[u8], added: Line, standings: &[SeatResult]) -> Vec<u8> {
    let text = std::str::from_utf8(record).unwrap();
    let mut lines = text.lines();
    let header = Header::parse(&Games::built_in(), lines.next().unwrap()).unwrap();
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut transcript = Transcript::default();
    for line in lines.filter_map(Line::parse).chain([added]) {
        match &line {
            Line::Sent { seat, text, .. } => transcript.sent(*seat, text),
            Line::Replied { seat, reply, .. } => transcript.replied(*seat, reply),
            Line::Forfeited { seat, forfeit, .. } => transcript.forfeited(*seat, *forfeit),
            Line::Noted { .. } | Line::Stderr { .. } => {}
        }
        writer.line(&line).unwrap();
    }
    writer.finish(standings, transcript.hash()).unwrap()
}

#[test]
fn records_with_a_farewell_to_an_exited_program_are_valid() {
    let (record, standings) = transcript("gomoku-gone.txt", "");
    assert!(!String::from_utf8(record.clone()).unwrap().contains("\"seat\":2,\"send\":\"EXIT"));
    assert_eq!(verify(&Games::built_in(), &record[..]).unwrap().standings, standings);
    let exit = |seat, text: &str| {
        let time = Micros(1_000_000);
        let text = text.to_owned();
        with_line(&record, Line::Sent { time, seat: Seat::from_index(seat), text }, &standings)
    };
    assert_eq!(
        verify(&Games::built_in(), &exit(1, "EXIT alpha")[..]).unwrap().standings,
        standings
    );
    for (seat, text) in [(0, "EXIT alpha"), (1, "EXIT beta"), (1, "EXIT TIE")] {
        assert!(
            verify(&Games::built_in(), &exit(seat, text)[..]).is_err(),
            "seat index {seat}: {text}"
        );
    }
}
