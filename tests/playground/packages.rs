//! People play game packages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use std::fs;

use crate::support::{Bots, files, succeed};
use crate::{Table, values};

const CONNECT4: &str = "games/packages/connect4";

#[test]
fn a_person_plays_a_game_package_by_its_pictures_and_legal_replies() {
    let table = Table::open(CONNECT4, &["games/packages/connect4/bots/center", "--clock", "cpu"]);
    table.done("new", "seat1=human&seat2=0&seed=s");
    let page = table.turn();
    assert!(page.contains("<img class=\"frame\" src=\"data:image/svg+xml;base64,"), "{page}");
    assert!(page.contains("alt=\"human begins\""), "{page}");
    let replies: Vec<_> = values(&page, "answer").collect();
    assert_eq!(replies, ["0", "1", "2", "3", "4", "5", "6"]);
    for reply in ["7", "x", "-1", "10"] {
        let refused = table.post("play", &format!("seat=1&turn=1&answer={reply}"));
        assert_eq!(refused.status, 422, "{reply}");
        assert!(refused.body.contains("is not one of the legal replies"), "{}", refused.body);
    }
    let (_, page) = table.play(|page| {
        let reply = values(page, "answer").next().expect("there is a legal reply");
        format!("answer={reply}")
    });
    assert!(page.contains("<table class=\"result\">"), "{page}");
    assert!(page.contains("<th class=\"number\">Points</th>"), "{page}");
    assert!(!page.contains("forfeits –"), "no bot forfeits: {page}");
    let records = files(&table.records());
    succeed(&["verify", "--game", CONNECT4, records[0].to_str().unwrap()]);
    table.close();
}

#[test]
fn a_person_sees_only_the_pictures_for_their_seat_during_the_match() {
    let game = "games/packages/liars-dice";
    let bot = "games/packages/liars-dice/bots/counter";
    let table = Table::open(game, &[bot, "--set", "dice=2", "--clock", "cpu"]);
    table.done("new", "seat1=human&seat2=0&seed=s");
    let page = table.turn();
    assert!(page.contains("roll "), "a person is told their dice: {page}");
    let pictures = ["?seat=1", "?seat=2", ""].map(|viewer| {
        let page = table.page(viewer);
        assert_eq!(page.matches("roll ").count(), 1, "{viewer}: {page}");
        let picture = page.split("data:image/svg+xml;base64,").nth(1).unwrap();
        let svg = STANDARD.decode(picture.split('"').next().unwrap()).unwrap();
        String::from_utf8(svg).unwrap()
    });
    // Each address shows the picture for seat 1, which hides the dice of seat 2.
    assert_eq!(pictures[0].matches("href='#hidden'").count(), 2, "{}", pictures[0]);
    assert!(pictures.iter().all(|picture| *picture == pictures[0]), "{pictures:#?}");
    table.close();
}

#[test]
fn a_person_reads_the_request_beside_the_text_field_of_a_game_without_legal_replies() {
    let bots = Bots::new();
    let parent = bots.path().to_str().unwrap();
    succeed(&["game", "new", "mygame", "--lang", "python", "--in", parent]);
    let package = bots.path().join("mygame");
    let rules = fs::read_to_string(package.join("rules.py")).unwrap();
    let listed = "{\"legal\": match.legal()}";
    assert!(rules.contains(listed), "{rules}");
    fs::write(package.join("rules.py"), rules.replace(listed, "{\"legal\": []}")).unwrap();
    let bot = fs::read_dir(package.join("bots")).unwrap().next().unwrap().unwrap().path();
    let table = Table::open(package.to_str().unwrap(), &[bot.to_str().unwrap(), "--clock", "cpu"]);
    table.done("new", "seat1=human&seat2=0&seed=s");
    let page = table.turn();
    let form = page.split("<form class=\"play\"").nth(1).unwrap().split("</form>").next().unwrap();
    assert!(form.contains("type=\"text\" name=\"answer\""), "{form}");
    assert!(form.contains("<code>move "), "{form}");
    table.done("play", "seat=1&turn=1&answer=1");
    let page = table.turn();
    let form = page.split("<form class=\"play\"").nth(1).unwrap().split("</form>").next().unwrap();
    assert_eq!(form.matches("<code>move ").count(), 1, "only what is new: {form}");
    table.close();
}
