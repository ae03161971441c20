//! Tricks as data, and its parameters as rules.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::{MOST_TABLES, Match, Params, Player, agrees, bounds};
use crate::bounds::Bounds;
use crate::info::{
    BotInfo, Estimate, Family, Game, GameInfo, Official, PairSeats, ParamKind, Phrase, Playground,
    Ranking, Reader, param, phrase, texts,
};
use crate::match_state::{MatchState, StartError, TurnPolicy};
use crate::name::BotName;
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{Value, Values};
use crate::{MIXED_TURNS_RULES_VERSION, RULES_VERSION};

/// How many bots play.
const SEATS: RangeInclusive<usize> = Player::ALL.len()..=Player::ALL.len();

/// The game.
pub fn game() -> Game {
    let official = Params::default();
    Game::new(GameInfo {
        name: "tricks".into(),
        title: "Tricks".into(),
        rules_version: RULES_VERSION.into(),
        seats: SEATS,
        columns: texts(["points", "tricks"]),
        ranking: Ranking::default(),
        params: vec![
            param(
                "tables",
                ParamKind::Integer(2..=MOST_TABLES.into()),
                Some(u32::from(official.tables).into()),
                "how many tables are played at once, an even number from 2 to 200; default 100",
            ),
            param(
                "move_limit",
                ParamKind::Duration,
                Some(Value::text(official.move_limit)),
                "the time for an answer for all tables; default 2s",
            ),
        ],
        seats_param: None,
        boards: None,
        episodes: None,
        bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Line, http: true },
        official: Official {
            schedule: Family::RoundRobin(PairSeats::Balanced),
            memory_mb: None,
            keeps_files: false,
            shared_deals: false,
        },
        trial: vec![("tables".into(), 2)],
        playground: Playground {
            params: Values::new().with("tables", 2_u32),
            slow: false,
            phrases: PHRASES.into(),
        },
        time: Estimate::growing(0, "tables", 25),
        record: Estimate::growing(0, "tables", 230),
        reader: Reader::of::<Params>(),
    })
}

impl Rules for Params {
    fn values(&self) -> Values {
        Values::new()
            .with("tables", u32::from(self.tables))
            .with("move_limit", Value::text(self.move_limit))
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

const PHRASES: [Phrase; 5] = [
    phrase(
        "states: X3Y7Z5Z3W8Z6X2Z1W7:W _\\nscores: 0:0 0:0",
        "Two tables: at the first your nine cards, trump W, and you attack; the second waits for \
         the other. Due: move= and a word for each",
    ),
    phrase(
        "states: >Y4+W2 Y8W3Z4Y4Z8X4Z0X0W6:W>Z1\\nscores: 0:1 0:0",
        "At the first Y4 answered your attack, you won and drew W2; at the second Z1 attacks. Due: \
         move= and a word for each",
    ),
    phrase(
        "states: -W5>Z5 _\\nscores: 1:1 0:0",
        "You lost the trick, drew W5, and Z5 attacks. Due: move= and a word for each",
    ),
    phrase(
        "states: + >W4+\\nscores: 8:9 8:9",
        "The pack is empty: nothing is drawn. Due: move= and a word for each",
    ),
    phrase(
        "states: +. +.\\nscores: 6:12 6:12\\nresult: 2",
        "All tables are over, and you have two points. Nothing is due.",
    ),
];
