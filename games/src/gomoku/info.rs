//! Gomoku as data, and its parameters as rules.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::{Match, Params, SEATS, SIDE, bounds};
use crate::RULES_VERSION;
use crate::bounds::Bounds;
use crate::info::{
    BotInfo, Estimate, Family, Game, GameInfo, Official, PairSeats, ParamKind, Phrase, Playground,
    Ranking, Reader, param, phrase, texts,
};
use crate::match_state::{MatchState, StartError};
use crate::moves::Grid;
use crate::name::BotName;
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{Value, Values};

/// The game.
pub fn game() -> Game {
    let official = Params::default();
    Game::new(GameInfo {
        name: "gomoku".into(),
        title: "Gomoku".into(),
        rules_version: RULES_VERSION.into(),
        seats: SEATS..=SEATS,
        columns: texts(["points"]),
        ranking: Ranking { by_mean: false, earlier_wins: true },
        params: vec![
            param(
                "overline",
                ParamKind::Choice(texts(["wins", "ignored"])),
                Some(official.overline.as_str().into()),
                "what a row of more than five is worth, wins or ignored; default wins",
            ),
            param(
                "first_number",
                ParamKind::Integer(0..=1),
                Some(u32::from(official.first_number).into()),
                "the number of the first prompt of the game phase, 0 or 1; default 0",
            ),
            param(
                "move_limit",
                ParamKind::Duration,
                Some(Value::text(official.move_limit)),
                "the time for an answer; default 500ms",
            ),
        ],
        seats_param: None,
        boards: None,
        episodes: None,
        bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Line, http: false },
        official: Official {
            schedule: Family::RoundRobin(PairSeats::Both),
            memory_mb: None,
            keeps_files: true,
            shared_deals: false,
        },
        trial: Vec::new(),
        playground: Playground { phrases: PHRASES.into(), ..Playground::default() },
        time: Estimate::fixed(1500),
        record: Estimate::fixed(3000),
        reader: Reader::of::<Params>(),
    })
}

impl Rules for Params {
    fn values(&self) -> Values {
        Values::new()
            .with("overline", self.overline.as_str())
            .with("first_number", u32::from(self.first_number))
            .with("move_limit", Value::text(self.move_limit))
    }

    fn seats(&self) -> RangeInclusive<usize> {
        SEATS..=SEATS
    }

    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        Ok(Box::new(Match::start(self, names, seed)))
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        bounds(forfeited)
    }

    /// The picture has 1.2 squares before the first crossing, and 0.7 behind the last one; a stone
    /// takes half a square on each side of its crossing.
    fn grid(&self) -> Option<Grid> {
        let side = usize::from(SIDE);
        Some(Grid { columns: side, rows: side, before: 0.7, behind: 0.2 })
    }
}

const PHRASES: [Phrase; 6] = [
    phrase("A []", "Open the game. Due: (X,Y)(X,Y)(X,Y), black, black and white"),
    phrase(
        "B [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "Answer the opening. Due: \"B\", or \"W\" (X,Y), or (X,Y)(X,Y)",
    ),
    phrase(
        "C [((0,0),\"B\"),((0,1),\"W\"),((1,0),\"B\"),((1,1),\"W\"),((14,14),\"B\")]",
        "Choose your colour. Due: \"B\" or \"W\"",
    ),
    phrase(
        "0 [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "The first stone of the game phase, a black one. Due: (X,Y)",
    ),
    phrase("EXIT opponent", "The opponent has won; half a second is left. Nothing is due."),
    phrase("EXIT TIE", "Nobody has won; half a second is left. Nothing is due."),
];
