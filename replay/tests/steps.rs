//! Steps of replays: their pictures come from the rules, and the last step shows the result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_games::{
    ExpectedReply, Forfeit, Game, Games, Micros, Params, Score, Seat, SeatResult, Seed, gomoku,
};
use arbiter_replay::{
    ForfeitedSeat, Header, Line, LineBlocks, Reader, Step, Steps, Transcript, Writer, steps, verify,
};
use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::json;
use support::{SPENT, names, params, play, reply, transcript};

/// Every step of a record.
fn all_steps(record: &[u8]) -> Steps {
    steps(&Games::built_in(), LineBlocks::new(record), 0..usize::MAX, Reader::default()).unwrap()
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
        let part = steps(
            &Games::built_in(),
            LineBlocks::new(&record[..]),
            middle..middle + 3,
            Reader::default(),
        )
        .unwrap();
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
    let steps_error =
        steps(&games, LineBlocks::new(edited.as_bytes()), 0..9, Reader::default()).unwrap_err();
    let verify_error = verify(&games, edited.as_bytes()).unwrap_err();
    assert_eq!(steps_error.to_string(), verify_error.to_string());
}

#[test]
fn an_error_shows_no_private_line() {
    let (record, _) = transcript("gomoku-example.txt", "");
    let text = String::from_utf8(record).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let private = r#"{"seat":2,"stderr":"my secret book","dropped":0}"#;
    for private in [private, &private.replace(':', ": ")] {
        let edited = format!("{header}\n{private}\n{rest}");
        let error = |visible: Option<&[bool]>| {
            let reader = Reader { names: None, visible };
            let lines = LineBlocks::new(edited.as_bytes());
            let difference = steps(&Games::built_in(), lines, 0..9, reader).unwrap_err();
            reader.redact(difference).to_string()
        };
        assert!(error(None).contains("secret") && error(Some(&[true; 2])).contains("secret"));
        assert_eq!(error(Some(&[true, false])), "line 2: not what the rules expect");
    }
}

/// A record of a package's game that the rules of no game replay.
fn package_record() -> String {
    let (record, _) = transcript("gomoku-example.txt", "");
    let text = String::from_utf8(record).unwrap();
    let header = text.lines().next().unwrap();
    let package = format!("\"game\":\"other\",\"package\":\"{}\",", "ab".repeat(32));
    let lines = [
        &header.replace("\"game\":\"gomoku\",", &package),
        r#"{"t":1,"seat":2,"send":"move"}"#,
        r#"{"t":2,"seat":2,"forfeit":"gone","wall_us":5,"cpu_us":4,"detail":"signal 11"}"#,
        r#"{"t":3,"seat":1,"reply":"x","wall_us":5,"cpu_us":4}"#,
        r#"{"t":3,"seat":1,"forfeit":"illegal","detail":"no such move"}"#,
        r#"{"seat":2,"stderr":"my secret book","dropped":0}"#,
    ];
    let before: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let footer = json!({
        "over": true, "scores": [[1], [0]], "forfeits": ["illegal", "gone"], "transcript": "",
        "seal": blake3::hash(before.as_bytes()).to_string(),
    });
    format!("{before}{footer}\n")
}

#[test]
fn private_lines_of_game_packages_are_hidden() {
    let record = package_record();
    for visible in [[true, true], [true, false], [false, true], [false, false]] {
        let reader = Reader { names: None, visible: Some(&visible) };
        let lines = LineBlocks::new(record.as_bytes());
        let steps = steps(&Games::built_in(), lines, 0..usize::MAX, reader).unwrap();
        let shown = format!("{steps:?}");
        let has = ["signal 11", "my secret book", "no such move"].map(|text| shown.contains(text));
        assert_eq!(has, [visible[1], visible[1], true], "{visible:?}: {shown}");
    }
}

#[test]
fn a_difference_in_a_long_record_has_its_line() {
    let params = params(&Games::built_in().find("wojna").unwrap(), r#"{"deals":1}"#);
    let (record, _) = play(&params, Seed::of_text("long"), &names(4), |message, _| {
        let is_ack = message.expected_reply == ExpectedReply::Ack;
        Ok(if is_ack { "=" } else { "= check" }.to_owned())
    });
    let text = String::from_utf8(record).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(text.len() > 500_000, "it has many blocks: {} bytes", text.len());
    for number in [2, 999, lines.len() / 2, lines.len() - 1] {
        let mut edited = lines.clone();
        edited[number - 1] = "wrong";
        let edited = edited.join("\n") + "\n";
        let difference = verify(&Games::built_in(), edited.as_bytes()).unwrap_err();
        assert_eq!(difference.to_string(), format!("line {number}: not a valid line: wrong"));
    }
    let more = format!("{text}more\n");
    let difference = verify(&Games::built_in(), more.as_bytes()).unwrap_err().to_string();
    assert!(difference.starts_with(&format!("line {}: ", lines.len() + 1)), "{difference}");
}

/// The number of squares of the path of this class.
fn squares(html: &str, class: &str) -> usize {
    let path = html.split(&format!("<path class=\"{class}\" d=\"")).nth(1).unwrap();
    path.split_once('"').unwrap().0.matches('M').count()
}

/// The places of this class, the text of each with its markup.
fn places(html: &str, class: &str) -> Vec<String> {
    let list = html.split(&format!("<ul class=\"places {class}\">")).nth(1).unwrap();
    let list = list.split_once("</ul>").unwrap().0;
    list.split("<li").skip(1).map(str::to_owned).collect()
}

/// The only step whose caption contains these words.
fn step_with<'a>(steps: &'a Steps, words: &str) -> &'a Step {
    let mut found = steps.drawn.iter().filter(|step| step.picture.caption.contains(words));
    found.next().unwrap_or_else(|| panic!("no step says {words}"))
}

#[test]
fn gomoku_shows_the_stones_and_the_numbers_of_the_last_ones() {
    let (record, standings) = transcript("gomoku-example.txt", "");
    let steps = all_steps(&record);
    assert_eq!(standings[0].score, Score(vec![2]));
    let replies: Vec<_> = steps.drawn.iter().filter_map(|step| step.reply.as_deref()).collect();
    assert_eq!(replies[..3], ["(0,0)(14,14)(0,1)", "(1,0) (1,1)", "\"B\""]);
    let html = html(&steps, steps.drawn.last().unwrap());
    assert_eq!(squares(&html, "black"), 6);
    assert_eq!(squares(&html, "white"), 4);
    assert_eq!(squares(&html, "won"), 5);
    assert!(html.contains(r#"<path class="last" d="M4,0h0">"#), "{html}");
    assert!(html.contains(r#"<text class="on-black" x="4" y="0">10</text>"#), "{html}");
    assert_eq!(html.matches("<text class=\"on-").count(), 6, "{html}");
    assert!(html.contains("alpha plays black"), "{html}");
    assert!(html.contains("beta added two stones and alpha chose black."), "{html}");
    assert!(html.contains(r#"role="img" aria-label="Stone 10: alpha places"#), "{html}");
}

#[test]
fn bitwa_shows_units_and_what_the_last_order_did() {
    let (record, _) = transcript("bitwa-example.txt", "= 1 0 0 1 1 1");
    let steps = all_steps(&record);
    let first = html(&steps, &steps.drawn[0]);
    assert!(first.contains(r#"viewBox="0 0 8 6""#));
    // The document's board has three units of strength 2 in each division.
    let letters = first.split("<text class=\"letters\"").nth(1).unwrap();
    let letters = letters.split(['>', '<']).nth(1).unwrap();
    for letter in ['A', 'a', 'B', 'b'] {
        assert_eq!(letters.matches(letter).count(), 3, "{letter}");
    }
    assert_eq!(squares(&first, "body seat1"), 6);
    assert_eq!(first.matches(r#".7">2</text>"#).count(), 12);
    assert!(first.contains("M0,0h1v1h-1z"), "the wall in the corner");
    assert_eq!(first.matches("<b>180\u{a0}s</b> left").count(), 2, "the clocks are full: {first}");
    assert_eq!(first.matches("<meter").count(), 2, "{first}");
    assert_eq!(squares(&first, "moves") + squares(&first, "attacks"), 0);
    let second = &steps.drawn[1];
    assert_eq!(second.reply.as_deref(), Some("= 1 5 1 -1 1 1"));
    let caption = &second.picture.caption;
    assert!(
        caption.starts_with("Round 1 of 100: alpha sends division A to (5,1), attacking"),
        "{caption}"
    );
    let shown = html(&steps, second);
    assert!(shown.contains(r#"<path class="target" d="M5.08,1.5a"#), "{shown}");
    assert!(shown.find("<svg") < shown.find("class=\"said\""), "the reply is below: {shown}");
    let attacked = step_with(&steps, "loses");
    let shown = html(&steps, attacked);
    assert!(squares(&shown, "hit") > 0 && shown.contains("−1"), "{shown}");
    let rest = shown.split("<g class=\"losses\">").nth(1).unwrap();
    let losses = rest.split("</g>").next().unwrap();
    let in_corners = losses.matches(".97\" y=\"").count();
    assert!(in_corners > 0 && in_corners == losses.matches("<text").count(), "{losses}");
    assert_eq!(steps.overview.chapters[1].0, "Round 2");
    assert!(second.clocks[0].left.unwrap() < Micros::from_millis(180_001));
}

#[test]
fn wojna_shows_piles_bids_and_who_takes_the_pot() {
    let (record, _) = transcript("wojna-war.txt", "= pass");
    let steps = all_steps(&record);
    let first = html(&steps, &steps.drawn[0]);
    assert_eq!(first.matches("<meter").count(), steps.overview.names.len(), "{first}");
    let auction = html(&steps, step_with(&steps, "pay a card each"));
    let seats = places(&auction, "wojna");
    assert_eq!(seats.len(), steps.overview.names.len() + 1, "the seats and the pot");
    assert_eq!(auction.matches("<b class=\"peeked\">").count(), steps.overview.names.len());
    assert!(html(&steps, step_with(&steps, "equal cards, so war of")).contains("goes to war"));
    let taken = step_with(&steps, "takes");
    let taken = places(&html(&steps, taken), "wojna");
    let winners: Vec<_> = taken.iter().filter(|place| place.contains("takes the pot")).collect();
    assert_eq!(winners.len(), 1, "{taken:?}");
    let pot = taken.last().unwrap();
    let size = pot.split("<p class=\"amount\">").nth(1).unwrap().split(' ').next().unwrap();
    assert!(winners[0].contains(&format!("<em>+{size}</em>")), "{size}: {}", winners[0]);
    assert_eq!(steps.overview.chapters[0], ("Deal 1".to_owned(), 0));
}

#[test]
fn tricks_shows_every_table() {
    let (record, _) = transcript("tricks-whole.txt", "");
    let steps = all_steps(&record);
    let last = html(&steps, steps.drawn.last().unwrap());
    assert!(last.contains("all tables are over: "), "{last}");
    assert_eq!(last.matches("Over: ").count(), places(&last, "tables few").len(), "{last}");
    let first = html(&steps, &steps.drawn[0]);
    let tables = places(&first, "tables few");
    for table in &tables {
        assert!(table.contains("18 in the pack"), "{table}");
        assert_eq!(table.matches("<b").count(), 18, "two hands of nine cards");
    }
    assert_eq!(places(&last, "tables few").len(), tables.len());
    let names = &steps.overview.names;
    assert!(names.iter().any(|name| last.contains(&format!("<em>{name} took it</em>"))), "{last}");
    assert_eq!(steps.overview.chapters.first().unwrap().0, "Trick 1");
    assert_eq!(steps.overview.chapters.last().unwrap().0, "Trick 18");
}

#[test]
fn blackjack_hides_the_dealers_second_card_until_all_have_acted() {
    let (record, standings) = transcript("blackjack-official.txt", "");
    let steps = all_steps(&record);
    let first = html(&steps, step_with(&steps, "to act"));
    assert_eq!(first.matches("face down").count(), 1);
    let settled = html(&steps, step_with(&steps, "the dealer"));
    assert_eq!(settled.matches("face down").count(), 0);
    let dealer = ["2", "3", "7", "10"].map(|card| format!("<b>{card}</b>"));
    assert!(settled.contains(&dealer.concat()), "{settled}");
    let last = html(&steps, steps.drawn.last().unwrap());
    assert!(last.contains("Result") && !last.contains("<th>Forfeit"), "{last}");
    assert!(last.contains("<th class=\"number\">Chips</th>") && !last.contains("Score"), "{last}");
    assert!(last.contains("Hand score ") && last.contains("Bank result "), "{last}");
    for standing in &standings {
        assert!(last.contains(&format!("Chips {}<", standing.score.0[0])), "{last}");
    }
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
    assert!(
        html.contains(" sent: <code>&lt;b&gt;(7,7)</code>; it "),
        "replies are escaped: {html}"
    );
    assert!(html.contains("last 2.5\u{a0}ms of at most 500\u{a0}ms, total 2.5\u{a0}ms"), "{html}");
    assert!(!html.contains("<meter"), "only time banks have a bar: {html}");
    assert!(html.contains("forfeits – illegal: its reply breaks the rules"), "{html}");
    assert!(html.contains("<dt>Limit</dt><dd>"), "{html}");
    // Several threads may use more processor time than the wall-clock time.
    let spent = format!("<dd>{}; processor {}</dd>", SPENT.wall.rounded(), SPENT.cpu.rounded());
    assert!(html.contains(&spent), "{spent}: {html}");
    let overview = &steps.overview;
    let seat = Seat::from_index(0);
    let forfeit = ForfeitedSeat { seat, kind: Forfeit::Illegal, step: 1 };
    assert_eq!(overview.forfeits[0], forfeit);
}

/// The record with one more line before the last one, and with recomputed hashes.
fn with_line(record: &[u8], added: Line<'_>, standings: &[SeatResult]) -> Vec<u8> {
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
        let seat = Seat::from_index(seat);
        with_line(&record, Line::Sent { time, seat, text: text.into() }, &standings)
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
