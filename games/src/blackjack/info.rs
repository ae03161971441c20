//! The descriptor of blackjack, and its rules from parameters.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::params::{Count, MAX_HANDS, MAX_ROUNDS, PerSeat, SEATS};
use super::table::ANTE;
use super::{Match, Params, bounds};
use crate::bounds::Bounds;
use crate::episode::{CarriedScore, EpisodeRules};
use crate::info::{
    BotGuide, BotInfo, EpisodeInfo, Estimate, Game, GameInfo, Official, Playground,
    ProtocolExample, Ranking, ScheduleKind, example, texts,
};
use crate::match_state::{MatchState, StartError};
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::parameter::{ParamKind, param};
use crate::protocol::{Framing, Protocol};
use crate::rules::Rules;
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The maximum chips or bad replies of a bot at the start of an episode. It is low enough that the
/// numbers at the start of later matches stay within [`PerSeat::MAX`].
const MAX_START: i64 = 1_000_000_000_000;

/// The game.
pub fn game() -> Game {
    let bounds = |max: u32| ParamKind::Integer(1..=max.into());
    let params = vec![
        param(
            "rounds",
            bounds(MAX_ROUNDS),
            "how many rounds an episode has, 1 to 1000; a match is one round; default 1",
        ),
        param("hands", bounds(MAX_HANDS), "how many hands a round has, 1 to 100; default 5"),
        param(
            "chips",
            ParamKind::PerSeat(0..=PerSeat::MAX),
            "what each bot starts with, one number for all or one for each seat as in 120,0,305; \
             default 200",
        ),
        param(
            "bad_answers",
            ParamKind::PerSeat(0..=PerSeat::MAX),
            "how many bad replies each bot has given earlier in the episode, as for chips; \
             default 0",
        ),
        param(
            "move_limit",
            ParamKind::Duration,
            "the time for a decision, the start of the program included; default 2s",
        ),
    ];
    Game::new(GameInfo {
        columns: texts(["chips"]),
        ranking: Ranking { by_mean: false, earlier_wins: true },
        episodes: Some(EpisodeInfo {
            rounds_param: "rounds".into(),
            min_score: ANTE,
            column: "broke".into(),
            official_rounds: 5,
        }),
        bots: BotInfo { protocol: Protocol::Exec, framing: Framing::Line, http: false },
        official: Official { memory_mb: Some(256), ..Official::of(ScheduleKind::Episodes(25)) },
        playground: Playground { params: Values::new(), slow: true, examples: EXAMPLES.into() },
        guide: GUIDE,
        time: Estimate::per_unit(0, "hands", 150),
        record: Estimate::per_unit(600, "hands", 220),
        ..GameInfo::new::<Params>("blackjack", "Blackjack", params)
    })
}

impl Rules for Params {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "rounds" => {
                let accepts = "a whole number from 1 to 1000, as in 1";
                self.rounds = Count::read(input, MAX_ROUNDS, accepts)?;
            }
            "hands" => {
                let accepts = "a whole number from 1 to 100, as in 5";
                self.hands = Count::read(input, MAX_HANDS, accepts)?;
            }
            "chips" => self.chips = PerSeat::read(input)?,
            "bad_answers" => self.bad_answers = PerSeat::read(input)?,
            "move_limit" => self.move_limit = input.some_time("2s")?,
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    fn values(&self) -> Values {
        Values::new()
            .with("rounds", self.rounds.0)
            .with("hands", self.hands.0)
            .with("chips", self.chips.value())
            .with("bad_answers", self.bad_answers.value())
            .with("move_limit", Value::text(self.move_limit))
    }

    fn seats(&self) -> RangeInclusive<usize> {
        SEATS
    }

    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        Ok(Box::new(Match::start(self, names.len(), seed)?))
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        bounds(self, forfeited)
    }

    fn episodes(&self) -> Option<&dyn EpisodeRules> {
        Some(self)
    }
}

/// Every bot starts with the same chips and carries them from round to round. Before each round the
/// bots that cannot pay an ante drop out ("A round").
impl EpisodeRules for Params {
    fn rounds(&self) -> u32 {
        self.rounds.0
    }

    fn begin(&self) -> Result<CarriedScore, StartError> {
        Ok(CarriedScore {
            score: start_value(&self.chips, "chips")?,
            bad_answers: start_value(&self.bad_answers, "bad_answers")?,
        })
    }

    fn at_table(&self, carried: &[CarriedScore]) -> Arc<dyn Rules> {
        Arc::new(Self {
            rounds: Self::default().rounds,
            chips: per_seat(carried.iter().map(|seat| seat.score)),
            bad_answers: per_seat(carried.iter().map(|seat| seat.bad_answers)),
            ..self.clone()
        })
    }
}

/// The numbers of the seats as a parameter.
fn per_seat(numbers: impl Iterator<Item = i64>) -> PerSeat {
    let numbers: Vec<_> = numbers.collect();
    PerSeat::each(numbers).expect("an episode's chips and bad replies stay far below 10^18")
}

/// The start value of all bots. `key` is the key of the parameter.
fn start_value(numbers: &PerSeat, key: &str) -> Result<i64, StartError> {
    numbers.for_all().filter(|number| *number <= MAX_START).ok_or_else(|| {
        StartError(format!(
            "{key} = {numbers}: in an episode it is one number for all bots, {MAX_START} at most"
        ))
    })
}

/// What authors of bots begin with.
const GUIDE: BotGuide = BotGuide {
    text: include_str!("../../../docs/bots/blackjack.md"),
    bots: &[&[
        ("bot.toml", include_str!("../../../bots/blackjack/basic/bot.toml")),
        ("bot.c", include_str!("../../../bots/blackjack/basic/bot.c")),
    ]],
};

const EXAMPLES: [ProtocolExample; 4] = [
    example(
        "10 73 J#Q72A39 10 170",
        "10 points with 7 and 3; the dealer shows J; you staked 10 chips and have 170 left. Reply: H, S, D or B n",
    ),
    example("20 73K J#Q72A39KT 10 170", "20 points after you drew K. Reply: H, S or B n"),
    example("21 QA J#Q72A39 10 300", "21 points in two cards. Reply: H, S, D or B n"),
    example("15 96 6#9648 10 0", "15 points and no chips left. Reply: H or S"),
];
