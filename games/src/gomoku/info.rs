//! The descriptor of gomoku, and its rules from parameters.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::{FirstNumber, Match, Params, SEATS, SIDE, bounds};
use crate::bounds::Bounds;
use crate::info::{
    BotGuide, Estimate, Game, GameInfo, Official, PairSeats, Playground, ProtocolExample, Ranking,
    ScheduleKind, example, texts,
};
use crate::match_state::{MatchState, StartError};
use crate::move_form::Grid;
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::parameter::{ParamKind, param};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The game.
pub fn game() -> Game {
    let params = vec![
        param(
            "overline",
            ParamKind::Choice(texts(["wins", "ignored"])),
            "rows of more than five: either wins or ignored; default wins",
        ),
        param(
            "first_number",
            ParamKind::Integer(0..=1),
            "the number of the first prompt of the game phase, 0 or 1; default 0",
        ),
        param("move_limit", ParamKind::Duration, "the time for a reply; default 500ms"),
    ];
    Game::new(GameInfo {
        ranking: Ranking { by_mean: false, earlier_wins: true },
        official: Official {
            keeps_files: true,
            ..Official::of(ScheduleKind::RoundRobin(PairSeats::Both))
        },
        playground: Playground { examples: EXAMPLES.into(), ..Playground::default() },
        guide: GUIDE,
        time: Estimate::fixed(1500),
        record: Estimate::fixed(3000),
        ..GameInfo::new::<Params>("gomoku", "Gomoku", params)
    })
}

impl Rules for Params {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "overline" => {
                let accepts = "`wins` or `ignored` for rows of more than five, as in wins";
                self.overline = input.text(accepts)?;
            }
            "first_number" => {
                self.first_number = match input.whole_number("0 or 1, as in 0")? {
                    0 => FirstNumber::Zero,
                    1 => FirstNumber::One,
                    _ => {
                        let why = "prompts are counted from 0 or from 1, as in 0";
                        return Err(input.impossible(why));
                    }
                };
            }
            "move_limit" => self.move_limit = input.some_time("500ms")?,
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    fn values(&self) -> Values {
        Values::new()
            .with("overline", self.overline.as_str())
            .with("first_number", self.first_number as u32)
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

    /// The picture has 1.2 squares of space before the first intersection of lines, and 0.7 after
    /// the last one. A stone covers half a square on each side of its intersection.
    fn grid(&self) -> Option<Grid> {
        let side = usize::from(SIDE);
        Some(Grid { columns: side, rows: side, before: 0.7, behind: 0.2 })
    }
}

/// What authors of bots begin with.
const GUIDE: BotGuide = BotGuide {
    text: include_str!("../../../docs/bots/gomoku.md"),
    bots: &[&[
        ("bot.toml", include_str!("../../../bots/gomoku/shapes/bot.toml")),
        ("bot.c", include_str!("../../../bots/gomoku/shapes/bot.c")),
    ]],
};

const EXAMPLES: [ProtocolExample; 6] = [
    example("A []", "Open the game. Reply: (X,Y)(X,Y)(X,Y), two black stones and a white one"),
    example(
        "B [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "Respond to the opening. Reply: \"B\", or \"W\" (X,Y), or (X,Y)(X,Y)",
    ),
    example(
        "C [((0,0),\"B\"),((0,1),\"W\"),((1,0),\"B\"),((1,1),\"W\"),((14,14),\"B\")]",
        "Choose your colour. Reply: \"B\" or \"W\"",
    ),
    example(
        "0 [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "Place the first stone of the game phase, a black one. Reply: (X,Y)",
    ),
    example("EXIT opponent", "Your opponent won. You have half a second to exit. No reply."),
    example("EXIT TIE", "A tie. You have half a second to exit. No reply."),
];
