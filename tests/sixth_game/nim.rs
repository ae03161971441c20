//! Nim: a heap of sticks, of which two players take one to three in turn. The last stick wins.
//!
//! This file has everything that Arbiter needs to know about a game.

use std::ops::RangeInclusive;

use arbiter_games::move_form::{FormFields, MoveForm};
use arbiter_games::picture::{Cell, Key, Part, Picture, Row, TablePicture, name};
use arbiter_games::{
    BotName, Bounds, EntrantName, Estimate, Forfeit, GameInfo, Illegal, MatchState, MatchView,
    Message, Micros, Official, PairSeats, ParamInput, ParamKind, ParamsError, Playground, Rules,
    ScheduleKind, Seat, SeatResult, Seed, StartError, Step, Value, Values, example, param, texts,
};

/// The most sticks of a heap.
const MOST: u32 = 100;

/// Nim as data.
pub(crate) fn info() -> GameInfo {
    let heap = param(
        "heap",
        ParamKind::Integer(1..=MOST.into()),
        "how many sticks there are, 1 to 100; default 21",
    );
    GameInfo {
        columns: texts(["wins", "sticks"]),
        official: Official::of(ScheduleKind::RoundRobin(PairSeats::Both)),
        trial: vec![("heap".into(), Value::from(5_u32))],
        playground: Playground {
            params: Values::new().with("heap", 7_u32),
            slow: false,
            examples: vec![example("heap 21", "21 sticks are left. Due: 1, 2 or 3")],
        },
        time: Estimate::per_unit(10, "heap", 5),
        record: Estimate::per_unit(500, "heap", 20),
        ..GameInfo::new::<Nim>("nim", "Nim", vec![heap])
    }
}

/// The parameters.
#[derive(Clone, Debug)]
struct Nim {
    heap: u32,
}

impl Default for Nim {
    fn default() -> Self {
        Self { heap: 21 }
    }
}

impl Rules for Nim {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        match input.key {
            "heap" => self.heap = input.number_in(1..=MOST, "1 to 100, as in 21", "1 to 100")?,
            _ => return Err(input.unknown()),
        }
        Ok(())
    }

    fn values(&self) -> Values {
        Values::new().with("heap", self.heap)
    }

    fn seats(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn start(&self, _names: &[BotName], _seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        let first = Seat::from_index(0);
        Ok(Box::new(Match { heap: self.heap, turn: first, taken: [0; 2], lost: None, told: 0 }))
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        let seat = |forfeited: &bool| {
            let wins = if *forfeited { 0..=0 } else { 0..=1 };
            vec![wins, 0..=i64::from(self.heap)]
        };
        Some(Bounds {
            seats: forfeited.iter().map(seat).collect(),
            sums: vec![1..=1, 0..=i64::from(self.heap)],
            bad_answers: vec![0; 2],
        })
    }
}

/// A match in progress.
#[derive(Clone, Debug)]
struct Match {
    heap: u32,
    turn: Seat,
    /// How many sticks each seat has.
    taken: [u32; 2],
    lost: Option<(Seat, Option<Forfeit>)>,
    /// The number of seats that know the end.
    told: usize,
}

impl Match {
    fn other(&self) -> Seat {
        Seat::from_index(1 - self.turn.index())
    }

    fn take(&mut self, answer: &str) -> Result<(), Illegal> {
        let sticks = answer.trim().parse().ok().filter(|sticks| (1..=3).contains(sticks));
        let sticks: u32 = sticks.filter(|sticks| *sticks <= self.heap).ok_or_else(|| {
            Illegal(format!("{answer:?} is not 1, 2 or 3 of {} sticks", self.heap))
        })?;
        self.heap -= sticks;
        self.taken[self.turn.index()] += sticks;
        self.turn = self.other();
        if self.heap == 0 {
            self.lost = Some((self.turn, None));
        }
        Ok(())
    }

    fn standing(&self, seat: Seat) -> SeatResult {
        let lost = self.lost.filter(|(loser, _)| *loser == seat);
        let wins = i64::from(lost.is_none());
        let score = vec![wins, i64::from(self.taken[seat.index()])];
        SeatResult::new(score, lost.and_then(|(_, forfeit)| forfeit))
    }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if self.lost.is_none() {
            let text = format!("heap {}", self.heap);
            return Step::Send(Message::request(self.turn, text, Micros::from_millis(500)));
        }
        if self.told < 2 {
            self.told += 1;
            let seat = Seat::from_index(self.told - 1);
            return Step::Send(Message::notice(seat, "over".to_owned()));
        }
        Step::Over(Seat::all(2).map(|seat| self.standing(seat)).collect())
    }

    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        _charged: Micros,
    ) -> Result<(), Illegal> {
        let seat = self.turn;
        let result = answer.map(|answer| self.take(answer));
        if let Some(forfeit) = Forfeit::from_reply(&result) {
            self.lost = Some((seat, Some(forfeit)));
        }
        result.unwrap_or(Ok(()))
    }

    fn view(&self) -> &dyn MatchView {
        self
    }
}

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], _eyes: Option<Seat>) -> Picture {
        let row = |seat: Seat| Row {
            class: None,
            cells: vec![
                Cell::seat(seat),
                Cell::text(name(names, seat)),
                Cell::number(self.taken[seat.index()]),
            ],
        };
        let table = TablePicture {
            class: "cards nim",
            head: vec![Cell::text("Seat"), Cell::text("Bot"), Cell::number("Sticks")],
            rows: Seat::all(2).map(row).collect(),
            foot: vec![Cell::text("Heap").spanning(2).as_header(), Cell::number(self.heap)],
        };
        let caption = format!("{} sticks are left.", self.heap);
        Picture { caption, parts: vec![Part::Table(table)] }
    }

    fn picture_key(&self) -> Key {
        [self.heap.into(), u64::from(self.lost.is_some()), 0, 0, 0, 0]
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit == "over"
    }

    fn move_form(&self, _seat: Seat, _chosen: &FormFields) -> MoveForm {
        let all = [("1", "Take one"), ("2", "Take two"), ("3", "Take three")];
        let legal = all.into_iter().filter(|(sticks, _)| self.clone().take(sticks).is_ok());
        MoveForm::of_replies("Take some sticks.", legal)
    }
}
