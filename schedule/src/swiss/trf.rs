//! Tournament reports in FIDE's text format TRF16 ("Tournament Report File", FIDE Handbook,
//! C.04.A, Annex 2), with the usual extensions for rounds (`XXR`), first colour (`XXC`) and
//! accelerated start (`XXA`). Arbiters' programs and checkers of pairings read it.

use std::fmt::Write;

use super::history::{Colour, Player, Round};
use super::round::{Swiss, WIN};

/// The most players that the format can number.
pub const MAX_TRF_PLAYERS: usize = 9999;

/// The report of a tournament. The names are those of the players, in the same order; longer ones
/// than 33 characters are cut. `None` if the format has no room for so many players.
pub fn trf(swiss: &Swiss, title: &str, players: &[Player], names: &[String]) -> Option<String> {
    if players.len() > MAX_TRF_PLAYERS {
        return None;
    }
    let mut text = format!("012 {}\n062 {}\n", one_line(title), players.len());
    text += "092 Individual: Swiss-System (Dutch)\n";
    let places = places(players);
    for (index, player) in players.iter().enumerate() {
        let name: String =
            one_line(names.get(index).map_or("", String::as_str)).chars().take(33).collect();
        let points = halves(total(player));
        let place = places[index];
        let number = index + 1;
        write!(text, "001 {number:>4}      {name:<33} {:>4}{:28}{points:>4} {place:>4}", "", "")
            .expect("a string takes all text");
        for round in &player.rounds {
            text += "  ";
            text += &entry(*round);
        }
        text.push('\n');
    }
    let colour = if swiss.initial == Colour::White { "white1" } else { "black1" };
    write!(text, "XXR {}\nXXC {colour}\n", swiss.rounds).expect("a string takes all text");
    Some(text)
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The half points of a player.
fn total(player: &Player) -> u32 {
    player.rounds.iter().map(|round| round.points(WIN)).sum()
}

/// Half points as points.
fn halves(points: u32) -> String {
    format!("{}.{}", points / 2, points % 2 * 5)
}

/// The place of each player, from 1: by points, then by number.
fn places(players: &[Player]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..players.len()).collect();
    order.sort_by_key(|&player| (std::cmp::Reverse(total(&players[player])), player));
    let mut places = vec![0; players.len()];
    for (place, player) in order.into_iter().enumerate() {
        places[player] = place + 1;
    }
    places
}

/// One round of a player: the opponent's number, the colour and the result, in 8 columns.
fn entry(round: Round) -> String {
    let game = |opponent: usize, colour: Colour, result: char| {
        let colour = if colour == Colour::White { 'w' } else { 'b' };
        format!("{:>4} {colour} {result}", opponent + 1)
    };
    match round {
        Round::Played { opponent, colour, points } => {
            let result = match (2 * points).cmp(&WIN) {
                std::cmp::Ordering::Less => '0',
                std::cmp::Ordering::Equal => '=',
                std::cmp::Ordering::Greater => '1',
            };
            game(opponent, colour, result)
        }
        Round::Forfeit { opponent, colour, won } => {
            game(opponent, colour, if won { '+' } else { '-' })
        }
        Round::PairingBye => "0000 - U".to_owned(),
        Round::Absent { points: 0 } => "0000 - Z".to_owned(),
        Round::Absent { points } if points < WIN => "0000 - H".to_owned(),
        Round::Absent { .. } => "0000 - F".to_owned(),
    }
}
