//! The descriptor of bitwa, and its rules from parameters.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::board::{ROUNDS, Rounds, official_boards, shipped_boards};
use super::{Match, Params, SEATS, bounds};
use crate::bounds::Bounds;
use crate::info::{
    BoardInfo, BotGuide, BotInfo, Estimate, Game, GameInfo, Official, PairSeats, Playground,
    ProtocolExample, ScheduleKind, example, texts,
};
use crate::match_state::{MatchState, StartError};
use crate::move_form::Grid;
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::parameter::{ParamKind, param};
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The game.
pub fn game() -> Game {
    let params = vec![
        param(
            "board",
            ParamKind::Text,
            "the board: one of pole, korytarze, labirynt, drobnica, kolosy, twierdze, maraton, \
             rumowisko, przyklad, or the text of a board; default pole",
        ),
        param(
            "rounds",
            ParamKind::Integer((*ROUNDS.start()).into()..=(*ROUNDS.end()).into()),
            "maximum number of rounds of a game, 1 to 1000000; default: the board's own",
        ),
        param("bank", ParamKind::Duration, "each bot's time for a whole game; default 3min"),
    ];
    Game::new(GameInfo {
        columns: texts(["wins-losses", "units", "strength"]),
        boards: Some(BoardInfo {
            key: "board".into(),
            shipped: shipped_boards().map(|(name, _)| name.into()).collect(),
            official: official_boards().map(|(name, _)| name.into()).collect(),
        }),
        bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Gtp, http: false },
        official: Official::of(ScheduleKind::RoundRobin(PairSeats::Random)),
        trial: vec![("rounds".into(), Value::from(40_u32))],
        playground: Playground { examples: EXAMPLES.into(), ..Playground::default() },
        guide: GUIDE,
        time: Estimate::fixed(2500),
        record: Estimate::fixed(7000),
        ..GameInfo::new::<Params>("bitwa", "Bitwa", params)
    })
}

impl Rules for Params {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "board" => {
                self.board = input.text("the name of a board or its text, as in pole")?;
            }
            "rounds" if *input.value == Value::Null => self.rounds = None,
            "rounds" => {
                let accepts = "a whole number from 1 to 1000000, as in 100";
                let why = "1 to 1000000 are allowed, as in 100";
                self.rounds = Some(Rounds(input.number_in(ROUNDS, accepts, why)?));
            }
            "bank" => self.bank = input.some_time("3min")?,
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    fn values(&self) -> Values {
        let values = Values::new().with("board", Value::text(&self.board));
        let rounds = self.rounds.into_iter();
        let values = rounds.fold(values, |values, rounds| values.with("rounds", rounds.0));
        values.with("bank", Value::text(self.bank))
    }

    fn seats(&self) -> RangeInclusive<usize> {
        SEATS..=SEATS
    }

    fn start(&self, _names: &[BotName], _seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        Ok(Box::new(Match::start(self)))
    }

    fn bounds(&self, _forfeited: &[bool]) -> Option<Bounds> {
        Some(bounds(self))
    }

    fn agrees(&self, score: &[i64]) -> bool {
        match score {
            [result, units, strength] => *result == (*units, *strength).cmp(&(0, 0)) as i64,
            _ => false,
        }
    }

    fn grid(&self) -> Option<Grid> {
        let columns = self.board.columns();
        let rows = self.board.rows();
        Some(Grid { columns, rows, before: 0.0, behind: 0.0 })
    }
}

/// What authors of bots begin with.
const GUIDE: BotGuide = BotGuide {
    text: include_str!("../../../docs/bots/bitwa.md"),
    bots: &[&[
        ("bot.toml", include_str!("../../../bots/bitwa/phalanx/bot.toml")),
        ("bot.c", include_str!("../../../bots/bitwa/phalanx/bot.c")),
    ]],
};

const EXAMPLES: [ProtocolExample; 5] = [
    example(
        "set_game 8 6 100 2 ######## #.A..a.# #AA#.aa# #BB.#bb# #.B..b.# ########",
        "The board: 8 columns, 6 rows, 100 rounds, units of strength 2; then the rows. Reply: =",
    ),
    example("time_left 180000", "180 s are left for the rest of the game. Reply: ="),
    example("gen_move A", "Give an order to your division A. Reply: = A xd yd dx dy p"),
    example(
        "play A 1 3 2 1 1 1",
        "Division A got this order. Your own orders are repeated too. Reply: =",
    ),
    example("quit", "The game is over. You have half a second to exit. No reply."),
];
