//! The descriptor of tricks, and its rules from parameters.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::{MAX_TABLES, Match, Params, Player, TableCount, agrees, bounds};
use crate::MIXED_TURNS_RULES_VERSION;
use crate::bounds::Bounds;
use crate::info::{
    BotGuide, BotInfo, Estimate, Game, GameInfo, Playground, ProtocolExample, example, texts,
};
use crate::match_state::{MatchState, StartError, TurnPolicy};
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::parameter::{ParamKind, param};
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The number of seats.
const SEATS: RangeInclusive<usize> = Player::ALL.len()..=Player::ALL.len();

/// The game.
pub fn game() -> Game {
    let params = vec![
        param(
            "tables",
            ParamKind::Integer(2..=MAX_TABLES.into()),
            "how many tables are played at once, an even number from 2 to 200; default 100",
        ),
        param(
            "move_limit",
            ParamKind::Duration,
            "the time for a reply, which covers all tables; default 2s",
        ),
    ];
    Game::new(GameInfo {
        columns: texts(["points", "tricks"]),
        bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Line, http: true },
        trial: vec![("tables".into(), Value::from(2_u32))],
        playground: Playground {
            params: Values::new().with("tables", 2_u32),
            slow: false,
            examples: EXAMPLES.into(),
        },
        guide: GUIDE,
        time: Estimate::per_unit(0, "tables", 25),
        record: Estimate::per_unit(0, "tables", 230),
        ..GameInfo::new::<Params>("tricks", "Tricks", params)
    })
}

impl Rules for Params {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "tables" => {
                let accepts = "an even number from 2 to 200, as in 100";
                let why = "each deal is played at two tables, with the hands exchanged, so it \
                           takes an even number from 2 to 200, as in 100";
                let tables = input.number_in(2..=MAX_TABLES, accepts, why)?;
                if !tables.is_multiple_of(2) {
                    return Err(input.impossible(why));
                }
                self.tables = TableCount(tables);
            }
            "move_limit" => self.move_limit = input.some_time("2s")?,
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    fn values(&self) -> Values {
        Values::new().with("tables", self.tables.0).with("move_limit", Value::text(self.move_limit))
    }

    fn seats(&self) -> RangeInclusive<usize> {
        SEATS
    }

    fn start(&self, _names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        Ok(Box::new(Match::start(self, seed)))
    }

    fn version_for(&self, turns: &[TurnPolicy]) -> Option<&'static str> {
        matches!(turns, [first, second] if first != second).then_some(MIXED_TURNS_RULES_VERSION)
    }

    fn start_for(
        &self,
        turns: &[TurnPolicy],
        names: &[BotName],
        seed: Seed,
    ) -> Result<Box<dyn MatchState>, StartError> {
        match *turns {
            [first, second] => {
                Ok(Box::new(Match::start(self, seed).with_turn_policies([first, second])))
            }
            _ => self.start(names, seed),
        }
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        bounds(self, forfeited)
    }

    fn agrees(&self, score: &[i64]) -> bool {
        matches!(*score, [points, tricks] if agrees(self, points, tricks))
    }
}

/// What authors of bots begin with.
const GUIDE: BotGuide = BotGuide {
    text: include_str!("../../../docs/bots/tricks.md"),
    bots: &[&[
        ("bot.toml", include_str!("../../../bots/tricks/counter/bot.toml")),
        ("bot.c", include_str!("../../../bots/tricks/counter/bot.c")),
    ]],
};

const EXAMPLES: [ProtocolExample; 5] = [
    example(
        "states: X3Y7Z5Z3W8Z6X2Z1W7:W _\\nscores: 0:0 0:0",
        "Two tables. At the first you have these nine cards, the trump is W, and you attack; the \
         second waits for your opponent. Reply: move= and a word for each table",
    ),
    example(
        "states: >Y4+W2 Y8W3Z4Y4Z8X4Z0X0W6:W>Z1\\nscores: 0:1 0:0",
        "At the first table Y4 answered your attack, you won the trick and drew W2; at the second \
         Z1 attacks you. Reply: move= and a word for each table",
    ),
    example(
        "states: -W5>Z5 _\\nscores: 1:1 0:0",
        "You lost the trick and drew W5, and Z5 attacks you. Reply: move= and a word for each table",
    ),
    example(
        "states: + >W4+\\nscores: 8:9 8:9",
        "The pack is empty: you draw no card. Reply: move= and a word for each table",
    ),
    example(
        "states: +. +.\\nscores: 6:12 6:12\\nresult: 2",
        "All tables are over, and you have two points. No reply.",
    ),
];
