//! The descriptor of wojna, and its rules from parameters.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use core::ops::RangeInclusive;

use super::auction::MAX_SEATS;
use super::{Match, Params, bounds};
use crate::bounds::Bounds;
use crate::info::{
    BotGuide, BotInfo, Estimate, Game, GameInfo, Official, Playground, ProtocolExample, Ranking,
    ScheduleKind, example,
};
use crate::match_state::{MatchState, StartError};
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::parameter::{ParamKind, param};
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The maximum number of deals of a match.
const MAX_DEALS: u32 = 10_000;
/// The minimum number of seats.
const MIN_SEATS: usize = 2;

/// The game.
pub fn game() -> Game {
    let params = vec![
        param(
            "deals",
            ParamKind::Integer(1..=MAX_DEALS.into()),
            "how many deals a match has, 1 to 10000; default 40",
        ),
        param(
            "deck",
            ParamKind::Text,
            "the cards: a list of cards v or ranges a-b, with *n for n of each, as in 1-10*4,20; \
             default 1-13*8",
        ),
        param(
            "clock",
            ParamKind::Text,
            "each bot's time for a deal, as T/M/t/m: T ms for the first M moves, t ms more for \
             each further m; default 30000/1000/3000/100",
        ),
        param(
            "seats",
            ParamKind::Integer(integer(MIN_SEATS)..=integer(MAX_SEATS)),
            "how many bots play, 2 to 4; default 4, the only official number",
        ),
    ];
    Game::new(GameInfo {
        ranking: Ranking { by_mean: true, earlier_wins: false },
        seats_param: Some("seats".into()),
        seats: MIN_SEATS..=MAX_SEATS,
        bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Gtp, http: false },
        official: Official { shared_deals: true, ..Official::of(ScheduleKind::Foursomes) },
        trial: vec![("deals".into(), Value::from(2_u32))],
        playground: Playground {
            params: Values::new().with("deals", 1_u32),
            slow: true,
            examples: EXAMPLES.into(),
        },
        guide: GUIDE,
        time: Estimate::per_unit(0, "deals", 1000),
        record: Estimate::per_unit(0, "deals", 110_000),
        ..GameInfo::new::<Params>("wojna", "Wojna", params)
    })
}

/// A number of seats as a value.
fn integer(seats: usize) -> i64 {
    i64::try_from(seats).expect("tables are small")
}

impl Rules for Params {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "deals" => {
                let accepts = "a whole number from 1 to 10000, as in 40";
                let why = "a match has 1 to 10000 deals, as in 40";
                self.deals = input.number_in(1..=MAX_DEALS, accepts, why)?;
            }
            "deck" => {
                let accepts = "a text of cards v or ranges a-b, with *n for n of each, separated \
                               by commas, as in 1-13*8";
                self.deck = input.text(accepts)?;
            }
            "clock" => {
                let accepts = "a text T/M/t/m, T ms for the first M moves and t ms for each m \
                               moves more, as in 30000/1000/3000/100";
                self.clock = input.text(accepts)?;
            }
            "seats" => {
                let accepts = "a whole number from 2 to 4, as in 4";
                let why = "a table has 2 to 4 seats, as in 4";
                self.seats = input.number_in(MIN_SEATS..=MAX_SEATS, accepts, why)?;
            }
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    /// Every seat must be dealt a card.
    fn check(&self) -> Result<(), ParamsError> {
        let cards = self.deck.cards().len();
        let seats = self.seats;
        if cards >= seats {
            return Ok(());
        }
        Err(ParamsError::new(format!(
            "deck cannot have {cards} cards: {seats} seats need at least one each, as in 1-13*8"
        )))
    }

    fn values(&self) -> Values {
        Values::new()
            .with("deals", self.deals)
            .with("deck", Value::text(&self.deck))
            .with("clock", Value::text(self.clock))
            .with("seats", integer(self.seats))
    }

    fn seats(&self) -> RangeInclusive<usize> {
        self.seats..=self.seats
    }

    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        Ok(Box::new(Match::start(self, names.len(), seed)))
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        bounds(self, forfeited)
    }
}

/// What authors of bots begin with.
const GUIDE: BotGuide = BotGuide {
    text: include_str!("../../../docs/bots/wojna.md"),
    bots: &[
        &[
            ("bot.toml", include_str!("../../../bots/wojna/threshold/bot.toml")),
            ("bot.c", include_str!("../../../bots/wojna/threshold/bot.c")),
        ],
        &[
            ("bot.toml", include_str!("../../../bots/wojna/miser/bot.toml")),
            ("bot.pl", include_str!("../../../bots/wojna/miser/bot.pl")),
        ],
    ],
};

const EXAMPLES: [ProtocolExample; 9] = [
    example("your_number 1", "You have seat 1. Sent once, at the start. Reply: ="),
    example("setdeck 8 1 1 2 2 3 3 4 4", "A new deal begins with these eight cards. Reply: ="),
    example(
        "time_settings 30000 1000 3000 100",
        "30 s for the first 1000 moves, 3 s for each 100 more. Reply: =",
    ),
    example(
        "setstate 4 4 1 1 1 1",
        "An auction begins: 4 cards are in the pot, and each seat has one card. Reply: =",
    ),
    example(
        "topcard 1 4",
        "Before the first play: your own card. After it: a card that is shown. Reply: =",
    ),
    example("time_left 30000 1000", "30 s are left for the next 1000 moves. Reply: ="),
    example("genmove 1", "Your move. Reply: = pass, = check or = raise 1, 2 or 3"),
    example("play 1 check", "Seat 1 made this move. Your own moves are repeated too. Reply: ="),
    example("quit", "The match is over. You have half a second to exit. No reply."),
];
