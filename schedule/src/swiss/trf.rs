//! Tournament reports in FIDE's text format TRF16 ("Tournament Report File", FIDE Handbook,
//! C.04.A, Annex 2), with the usual extensions for rounds (`XXR`), first colour (`XXC`) and
//! accelerated start (`XXA`). Arbiters' programs and checkers of pairings read it.

use std::fmt::Write;

use thiserror::Error;

use super::history::{Colour, Player, Round, Variant};
use super::round::Swiss;
use super::standings::standings;

/// The most players that the format can number.
pub const MAX_TRF_PLAYERS: usize = 9999;

/// Why a tournament has no report in this format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrfError {
    /// There are too many players.
    #[error("TRF16 has no room for {players} players; at most {MAX_TRF_PLAYERS} can be reported")]
    TooManyPlayers {
        /// The number of players.
        players: usize,
    },
    /// A round has two games.
    #[error("TRF16 has no matches of two games; only a Swiss of single games can be reported")]
    TwoGames,
}

/// The report of a tournament. The names are those of the players, in the same order. Of longer
/// ones only 33 characters fit.
///
/// # Errors
/// If the format has no room for the tournament.
pub fn trf(
    swiss: &Swiss,
    title: &str,
    players: &[Player],
    names: &[String],
) -> Result<String, TrfError> {
    if swiss.variant == Variant::Double {
        return Err(TrfError::TwoGames);
    }
    if players.len() > MAX_TRF_PLAYERS {
        return Err(TrfError::TooManyPlayers { players: players.len() });
    }
    let mut text = format!("012 {}\n062 {}\n", one_line(title), players.len());
    text += "092 Individual: Swiss-System (Dutch)\n";
    let variant = swiss.variant;
    let places = places(players, variant);
    for (index, player) in players.iter().enumerate() {
        let name: String =
            one_line(names.get(index).map_or("", String::as_str)).chars().take(33).collect();
        let points = halves(total(player, variant));
        let place = places[index];
        let number = index + 1;
        write!(text, "001 {number:>4}      {name:<33} {:>4}{:28}{points:>4} {place:>4}", "", "")
            .expect("a string takes all text");
        for round in &player.rounds {
            text += "  ";
            text += &entry(*round, variant);
        }
        text.push('\n');
    }
    let colour = if swiss.initial == Colour::White { "white1" } else { "black1" };
    for player in 0..swiss.accelerated.min(players.len()) {
        write!(text, "XXA {:>4}", player + 1).expect("a string takes all text");
        for round in 0..swiss.rounds {
            let points = halves(swiss.extra(player, round));
            write!(text, " {points:>4}").expect("a string takes all text");
        }
        text.push('\n');
    }
    write!(text, "XXR {}\nXXC {colour}\n", swiss.rounds).expect("a string takes all text");
    Ok(text)
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The half points of a player.
fn total(player: &Player, variant: Variant) -> u32 {
    player.rounds.iter().map(|round| round.points(variant)).sum()
}

/// Half points as points.
fn halves(points: u32) -> String {
    format!("{}.{}", points / 2, points % 2 * 5)
}

/// The place of each player, from 1: by the standings, then by number.
fn places(players: &[Player], variant: Variant) -> Vec<usize> {
    let rounds = players.iter().map(|player| player.rounds.len()).max().unwrap_or(0);
    let standings = standings(players, variant, rounds);
    let mut order: Vec<usize> = (0..players.len()).collect();
    order.sort_by_key(|&player| (standings[player].rank, player));
    let mut places = vec![0; players.len()];
    for (place, player) in order.into_iter().enumerate() {
        places[player] = place + 1;
    }
    places
}

/// One round of a player: the opponent's number, the colour and the result, in 8 columns.
fn entry(round: Round, variant: Variant) -> String {
    let game = |opponent: usize, colour: Colour, result: char| {
        let colour = if colour == Colour::White { 'w' } else { 'b' };
        format!("{:>4} {colour} {result}", opponent + 1)
    };
    match round {
        Round::Played { opponent, colour, points } => {
            let result = match (2 * points).cmp(&variant.win()) {
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
        Round::Absent { points } if points < variant.win() => "0000 - H".to_owned(),
        Round::Absent { .. } => "0000 - F".to_owned(),
    }
}
