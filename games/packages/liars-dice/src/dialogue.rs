//! The dialogue with Arbiter: what the bots are told and asked, and what people see. Arbiter counts
//! seats from 1, the game from 0.

use serde_json::{Value, json};

use crate::call::{Bid, Call};
use crate::dice::Generator;
use crate::drawing::Scene;
use crate::game::{Challenge, Event, Game};
use crate::words;

/// A match in progress.
pub struct Dialogue {
    names: Vec<String>,
    has_frames: bool,
    /// The number of dice of each seat at the start.
    dice: usize,
    game: Game,
}

impl Dialogue {
    /// The match of a `new` question.
    pub fn new(new: &Value) -> Self {
        let names = new["bots"].as_array().expect("bots").iter();
        let names: Vec<_> = names.map(|name| name.as_str().expect("a name").to_owned()).collect();
        let dice = new["params"]["dice"].as_u64().and_then(|dice| usize::try_from(dice).ok());
        let dice = dice.expect("a small number of dice");
        let generator = Generator::new(new["seed"].as_str().expect("a seed"));
        Self {
            game: Game::new(names.len(), dice, new["params"]["wild"] == true, generator),
            names,
            has_frames: new["frames"] == true,
            dice,
        }
    }

    /// The actions at the start.
    pub fn begin(&mut self) -> Vec<Value> {
        let seats = self.names.len();
        let wild = u8::from(self.game.is_wild());
        let tell = |seat| tell(seat, &format!("start {seats} {} {} {wild}", seat + 1, self.dice));
        let mut actions: Vec<_> = (0..seats).map(tell).collect();
        actions.extend(self.begin_round());
        actions
    }

    /// The actions that follow the reply to the last request.
    pub fn hear(&mut self, heard: &Value) -> Vec<Value> {
        let seat = self.game.turn();
        let Some(text) = heard["text"].as_str() else {
            return self.forfeit(seat);
        };
        match Call::parse(text).and_then(|call| self.game.call(call)) {
            Ok(Event::Bid(bid)) => self.bid(seat, bid),
            Ok(Event::Challenge(challenge)) => self.challenge(challenge),
            Err(why) => {
                let mut actions = vec![json!({ "illegal": seat + 1, "why": why })];
                actions.extend(self.forfeit(seat));
                actions
            }
        }
    }

    /// The legal replies of a seat.
    pub fn legal(&self, seat: u64) -> Vec<String> {
        if usize::try_from(seat) != Ok(self.game.turn() + 1) {
            return Vec::new();
        }
        self.game.legal().into_iter().map(Call::reply).collect()
    }

    /// A seat has bid.
    fn bid(&self, seat: usize, bid: Bid) -> Vec<Value> {
        let event = format!("{} bids {}", self.names[seat], words::bid(bid));
        let mut actions = self.tell_all(&format!("bid {} {} {}", seat + 1, bid.count, bid.face));
        actions.extend(self.show(&event, None));
        actions.push(self.ask());
        actions
    }

    /// A seat has challenged the last bid.
    fn challenge(&mut self, challenge: Challenge) -> Vec<Value> {
        let loser = challenge.loser();
        let mut lines = vec![format!("liar {}", challenge.challenger + 1)];
        for (seat, hand) in self.seats_with_dice() {
            lines.push(format!("dice {} {}", seat + 1, join(hand)));
        }
        lines.push(format!("lost {} 1", loser + 1));
        let mut actions = self.tell_all(&lines.join("\n"));

        let bid = words::bid(challenge.bid);
        let there_are = words::there_are(challenge.count);
        let seats = [challenge.challenger, challenge.bidder, loser];
        let [challenger, bidder, name] = seats.map(|seat| &self.names[seat]);
        let out = if self.game.hands()[loser].len() == 1 { " and is out" } else { "" };
        let event = format!(
            "{challenger} says liar to {bid} by {bidder}: {there_are}, {name} loses a die{out}"
        );
        actions.extend(self.show(&event, Some(challenge)));
        actions.extend(self.lose(loser, 1));
        actions
    }

    /// A seat has forfeited: it loses all its dice.
    fn forfeit(&mut self, seat: usize) -> Vec<Value> {
        let dice = self.game.hands()[seat].len();
        let mut actions = self.tell_all(&format!("lost {} {dice}", seat + 1));
        actions.push(json!({ "note": format!("{} forfeits and is out", self.names[seat]) }));
        actions.extend(self.lose(seat, dice));
        actions
    }

    /// A seat loses dice, which ends the round.
    fn lose(&mut self, seat: usize, dice: usize) -> Vec<Value> {
        self.game.lose(seat, dice);
        let mut actions = Vec::new();
        if self.game.hands()[seat].is_empty() {
            actions.push(json!({ "dismiss": seat + 1 }));
        }
        if let Some(winner) = self.game.winner() {
            actions.extend(self.show(&format!("{} wins", self.names[winner]), None));
            let scores: Vec<_> = self.game.points().into_iter().map(|points| [points]).collect();
            actions.push(json!({ "over": scores }));
        } else {
            actions.extend(self.begin_round());
        }
        actions
    }

    /// All dice are rolled.
    fn begin_round(&mut self) -> Vec<Value> {
        self.game.roll();
        let counts: Vec<_> = self.game.hands().iter().map(Vec::len).collect();
        let round = format!("round {}", join(&counts));
        let mut actions = Vec::new();
        for (seat, hand) in self.seats_with_dice() {
            actions.push(tell(seat, &format!("{round}\nroll {}", join(hand))));
        }
        let first = &self.names[self.game.turn()];
        actions
            .extend(self.show(&format!("round {}: {first} bids first", self.game.round()), None));
        actions.push(self.ask());
        actions
    }

    /// The request for a call, with the bid that it must exceed.
    fn ask(&self) -> Value {
        let (count, face) = self.game.bid().map_or((0, 0), |bid| (bid.count, bid.face));
        json!({ "ask": self.game.turn() + 1, "text": format!("move {count} {face}") })
    }

    /// The seats that are not out, with their dice.
    fn seats_with_dice(&self) -> impl Iterator<Item = (usize, &Vec<u8>)> {
        self.game.hands().iter().enumerate().filter(|(_, hand)| !hand.is_empty())
    }

    /// Tells all seats that are not out.
    fn tell_all(&self, text: &str) -> Vec<Value> {
        self.seats_with_dice().map(|(seat, _)| tell(seat, text)).collect()
    }

    /// An event in words. If pictures are recorded, those after it: one for each seat, and one for
    /// the public.
    fn show(&self, event: &str, challenge: Option<Challenge>) -> Vec<Value> {
        let mut actions = vec![json!({ "note": event })];
        if !self.has_frames {
            return actions;
        }
        let picture = |viewer| {
            let scene =
                Scene { game: &self.game, names: &self.names, dice: self.dice, viewer, challenge };
            json!({ "svg": scene.draw(), "caption": event })
        };
        for seat in 0..self.names.len() {
            actions.push(json!({ "frame": picture(Some(seat)), "for": seat + 1 }));
        }
        actions.push(json!({ "frame": picture(None) }));
        actions
    }
}

fn tell(seat: usize, text: &str) -> Value {
    json!({ "tell": seat + 1, "text": text })
}

/// Numbers with one blank between two of them.
fn join<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::matching;

    fn new(seats: usize) -> Dialogue {
        let names = ["alice", "b<b", "carol"];
        Dialogue::new(&json!({
            "protocol": 1,
            "params": { "dice": 2, "wild": true },
            "seed": "0".repeat(64),
            "bots": names[..seats],
            "frames": true,
        }))
    }

    fn text(seat: &Value, text: &str) -> Value {
        json!({ "seat": seat, "text": text })
    }

    /// The texts that a seat is told by these actions.
    fn told(actions: &[Value], seat: usize) -> String {
        let tells = actions.iter().filter(|action| action["tell"] == seat);
        let lines: Vec<_> = tells.map(|tell| tell["text"].as_str().unwrap()).collect();
        lines.join("\n")
    }

    fn seat_asked(actions: &[Value]) -> &Value {
        &actions.last().unwrap()["ask"]
    }

    #[test]
    fn each_seat_learns_its_own_dice_alone() {
        let mut dialogue = new(3);
        let actions = dialogue.begin();
        for seat in 1..=3 {
            let hand = join(&dialogue.game.hands()[seat - 1]);
            let lines = format!("start 3 {seat} 2 1\nround 2 2 2\nroll {hand}");
            assert_eq!(told(&actions, seat), lines);
            let frame = actions.iter().find(|action| action["for"] == seat).unwrap();
            let svg = frame["frame"]["svg"].as_str().unwrap();
            assert_eq!(svg.matches("href='#hidden'").count(), 4);
            assert_eq!(svg.matches("href='#d").count(), 2);
        }
        let public = actions.iter().rfind(|action| !action["frame"].is_null()).unwrap();
        let svg = public["frame"]["svg"].as_str().unwrap();
        assert!(public["for"].is_null() && svg.contains(">b&lt;b<"));
        assert_eq!(svg.matches("href='#d").count(), 6);
    }

    #[test]
    fn a_match_of_lies() {
        let mut dialogue = new(2);
        let mut actions = dialogue.begin();
        let first = seat_asked(&actions).clone();
        for dice in [4, 3] {
            assert_eq!(seat_asked(&actions), &first);
            let total = dialogue.game.dice();
            assert_eq!(total, dice);
            // A face that not all dice count for.
            let all = dialogue.game.hands().concat();
            let face = (2..=6).find(|face| matching(&all, *face, true) < dice).unwrap();
            let bid = format!("{dice} {face}");
            actions = dialogue.hear(&text(&first, &bid));
            let second = seat_asked(&actions).clone();
            assert_eq!(actions.last().unwrap()["text"], format!("move {bid}"));
            assert_eq!(dialogue.legal(first.as_u64().unwrap()), [""; 0]);
            assert_eq!(dialogue.legal(second.as_u64().unwrap())[0], "liar");
            actions = dialogue.hear(&text(&second, "liar"));
            assert!(told(&actions, 1).contains(&format!("\nlost {first} 1")));
        }
        let loser = first.as_u64().unwrap();
        assert!(actions.contains(&json!({ "dismiss": loser })));
        let scores = if loser == 1 { [[0], [1]] } else { [[1], [0]] };
        assert_eq!(actions.last().unwrap(), &json!({ "over": scores }));
    }

    #[test]
    fn a_forfeit_costs_all_dice() {
        for reply in
            [json!({ "forfeit": "clock" }), json!({ "text": "liar" }), json!({ "text": "" })]
        {
            let mut dialogue = new(3);
            let actions = dialogue.begin();
            let first = usize::try_from(seat_asked(&actions).as_u64().unwrap()).unwrap();
            let actions = dialogue.hear(&reply);
            assert_eq!(actions[0]["illegal"].is_null(), reply["text"].is_null());
            let second = first % 3 + 1;
            assert!(told(&actions, second).starts_with(&format!("lost {first} 2\nround ")));
            assert_eq!(seat_asked(&actions), second);
            let actions = dialogue.hear(&reply);
            let mut scores = [[2]; 3];
            scores[first - 1] = [0];
            scores[second - 1] = [1];
            assert_eq!(actions.last().unwrap(), &json!({ "over": scores }));
        }
    }
}
