//! Properties of tricks: the messages to a seat are correct and enough to derive the state of every
//! table, every trick is counted, and exchanged seats cancel luck.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::collections::BTreeSet;

use arbiter_games::tricks::{Card, DECK, HAND, Match, Params, Player, Suit, TRICKS, Table};
use arbiter_games::{
    Forfeit, MatchState as _, Micros, Owes, SeatResult, Seed, Step, read_rules, tricks,
};
use dialogue::{Reply, scores};
use proptest::collection::vec;
use proptest::prelude::*;

/// One table as a seat sees it.
#[derive(Default)]
struct View {
    hand: Vec<Card>,
    trump: Option<Suit>,
    /// All cards dealt to this seat.
    dealt: Vec<Card>,
    /// The seat's own card on the table, and the opponent's.
    own: Option<Card>,
    theirs: Option<Card>,
    /// Whether the seat's own card is the attack.
    attacks: bool,
    won: u8,
    lost: u8,
    over: bool,
    /// All messages and played cards; the seat's own cards follow a `<`.
    history: String,
}

impl View {
    /// Applies and checks a message to the seat.
    fn hear(&mut self, state: &str) {
        self.history.push_str(state);
        let mut rest = state;
        while let Some(first) = rest.chars().next() {
            assert!(!self.over, "{state} after the end");
            match first {
                '>' => {
                    assert!(self.theirs.replace(rest[1..3].parse().unwrap()).is_none());
                    rest = &rest[3..];
                }
                '+' | '-' => {
                    self.score(first == '+');
                    rest = &rest[1..];
                }
                ':' => {
                    let trump = |suit: &Suit| rest[1..].starts_with(suit.letter());
                    self.trump = Suit::ALL.into_iter().find(trump);
                    assert!(self.trump.is_some() || rest[1..].starts_with('N'));
                    assert_eq!(self.hand.len(), HAND);
                    rest = &rest[2..];
                }
                '.' => {
                    self.over = true;
                    rest = &rest[1..];
                }
                _ => {
                    let card = rest[..2].parse().unwrap();
                    self.hand.push(card);
                    self.dealt.push(card);
                    rest = &rest[2..];
                }
            }
        }
    }

    /// Ends a trick; `won` is the referee's result.
    fn score(&mut self, won: bool) {
        let own = self.own.take().unwrap();
        let theirs = self.theirs.take().unwrap();
        let above =
            |card: Card, other: Card| card.suit() == other.suit() && card.rank() > other.rank();
        let trumps = |card: Card, other: Card| {
            Some(card.suit()) == self.trump && Some(other.suit()) != self.trump
        };
        let right = if self.attacks {
            !(above(theirs, own) || trumps(theirs, own))
        } else {
            above(own, theirs) || trumps(own, theirs)
        };
        assert_eq!(won, right, "{}", self.history);
        self.won += u8::from(won);
        self.lost += u8::from(!won);
    }

    /// The legal cards.
    fn choice(&self) -> Vec<Card> {
        let same = |card: &&Card| self.theirs.is_some_and(|theirs| theirs.suit() == card.suit());
        let following: Vec<_> = self.hand.iter().filter(same).copied().collect();
        if following.is_empty() { self.hand.clone() } else { following }
    }

    fn play(&mut self, card: Card) {
        self.hand.retain(|held| *held != card);
        self.own = Some(card);
        self.attacks = self.theirs.is_none();
        self.history.push('<');
        self.history.push_str(&card.to_string());
    }

    /// A choice that depends only on the history of this table.
    fn policy(&self, salt: u64) -> Card {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = self.history.bytes().fold(salt ^ 0xcbf2_9ce4_8422_2325, mix);
        let choice = self.choice();
        choice[usize::try_from(hash >> 33).unwrap() % choice.len()]
    }
}

/// The seats' views of all tables.
struct Views([Vec<View>; 2]);

impl Views {
    fn new(tables: usize) -> Self {
        Self([(); 2].map(|()| (0..tables).map(|_| View::default()).collect()))
    }

    /// Applies a message to a seat; returns the positions of the tables that wait for it.
    fn hear(&mut self, player: usize, text: &str) -> Vec<usize> {
        let views = &mut self.0[player];
        let mut lines = text.lines();
        let states = lines.next().unwrap().strip_prefix("states: ").unwrap();
        let scores = lines.next().unwrap().strip_prefix("scores: ").unwrap();
        let states = states.split(' ');
        let scores = scores.split(' ');
        assert_eq!((states.clone().count(), scores.clone().count()), (views.len(), views.len()));
        let mut waiting = Vec::new();
        for (index, ((view, state), score)) in views.iter_mut().zip(states).zip(scores).enumerate()
        {
            if state == "_" {
                continue;
            }
            if view.over {
                assert_eq!(state, ".");
                continue;
            }
            view.hear(state);
            let (lost, won) = score.split_once(':').unwrap();
            let lost: u8 = lost.parse().unwrap();
            let won: u8 = won.parse().unwrap();
            assert_eq!((lost, won), (view.lost, view.won));
            assert!(view.own.is_none());
            if !view.over {
                waiting.push(index);
            }
        }
        waiting
    }
}

fn start(pairs: u32, seed: [u8; 32]) -> Match {
    let json = serde_json::json!({ "tables": 2 * pairs });
    let params: Params =
        read_rules(&tricks::game().params, &serde_json::from_value(json).unwrap()).unwrap();
    Match::start(&params, Seed(seed))
}

/// The result of a match.
struct Played {
    views: Views,
    scores: Vec<Vec<i64>>,
    transcript: Vec<String>,
}

/// Plays a match with `policy` in both seats, and checks the order of the referee's requests.
fn honest(pairs: u32, seed: [u8; 32], policy: impl Fn(&View, usize) -> Card) -> Played {
    let mut game = start(pairs, seed);
    let mut views = Views::new(game.tables().len());
    let mut last = None;
    let played = loop {
        let waits = |player| game.tables().iter().any(|table| table.turn() == Some(player));
        let [first, second] = Player::ALL.map(waits);
        let step = game.step();
        let Step::Say(say) = step else { panic!("{step:?}") };
        let player = say.seat.index();
        let waiting = views.hear(player, &say.text);
        if say.owes == Owes::Nothing {
            assert!(!first && !second && player == 0);
            break game;
        }
        assert!(!waiting.is_empty());
        let other_waits = if player == 0 { second } else { first };
        assert!(last != Some(player) || !other_waits, "seat {} is asked twice", say.seat);
        assert!(last.is_some() || player == 0, "seat 1 is asked first");
        last = Some(player);
        let mut words = vec!["_".to_owned(); views.0[player].len()];
        for index in waiting {
            let view = &mut views.0[player][index];
            let card = policy(view, player);
            view.play(card);
            words[index] = card.to_string();
        }
        game.receive_reply(Ok(&words.join(" ")), Micros::ZERO).unwrap();
    };
    finish(played, views)
}

fn finish(mut game: Match, mut views: Views) -> Played {
    let mut farewell = Vec::new();
    let played = dialogue::play(&mut game, |say| panic!("asked after the end: {say:?}"));
    for line in &played.transcript {
        if let Some(text) = line.strip_prefix("2> ") {
            views.hear(1, &text.replace("\\n", "\n"));
            farewell.push(text.to_owned());
        }
    }
    assert_eq!(farewell.len(), 1);
    Played { views, scores: scores(&played), transcript: farewell }
}

/// A valid or invalid word for a card.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => "[WXYZ][0-8]",
        2 => Just(".".to_owned()),
        1 => "[W-Zw-z]?[0-9]?",
        1 => "\\PC{0,3}",
    ]
}

/// A reply: mostly one word for each table, sometimes any text, or none.
fn reply(tables: usize) -> impl Strategy<Value = Reply> {
    let key = prop::sample::select(&["", "move="][..]);
    let words =
        (key, vec(word(), tables)).prop_map(|(key, words)| Ok(key.to_owned() + &words.join(" ")));
    let answer = prop_oneof![
        40 => words,
        1 => any::<String>().prop_map(Ok),
        1 => prop::sample::select(&Forfeit::ALL[..]).prop_map(Err),
    ];
    (answer, (0..3_000_000_i64).prop_map(Micros))
}

/// Pairs of tables, a seed, and replies in turn; `None` is an honest reply.
fn chaos() -> impl Strategy<Value = (u32, [u8; 32], Vec<Option<Reply>>)> {
    (1..4_u32, any::<[u8; 32]>()).prop_flat_map(|(pairs, seed)| {
        let tables = usize::try_from(2 * pairs).unwrap();
        let replies = vec(prop::option::weighted(0.1, reply(tables)), 1..80);
        (Just(pairs), Just(seed), replies)
    })
}

/// The reply of a bot that plays the last legal card at each table.
fn last_cards(game: &Match, player: Player) -> String {
    let tables = game.tables().iter();
    let word = |table: &Table| match table.playable().last() {
        Some(card) if table.turn() == Some(player) => card.to_string(),
        _ => "anything".to_owned(),
    };
    tables.map(word).collect::<Vec<_>>().join(" ")
}

/// Plays a match with these replies, repeated in turn; returns all messages.
fn run(game: &mut Match, replies: &[Option<Reply>]) -> (Vec<String>, Vec<SeatResult>) {
    let mut replies = replies.iter().cycle();
    let mut said = Vec::new();
    loop {
        match game.step() {
            Step::Say(say) => {
                said.push(format!("{} {}", say.seat, say.text));
                if say.owes == Owes::Nothing {
                    continue;
                }
                let honest = last_cards(game, Player::ALL[say.seat.index()]);
                let honest = (Ok(honest), Micros::ZERO);
                let (answer, charged) = replies.next().unwrap().as_ref().unwrap_or(&honest);
                let verdict =
                    game.receive_reply(answer.as_deref().map_err(|forfeit| *forfeit), *charged);
                said.extend(verdict.err().map(|illegal| illegal.to_string()));
            }
            Step::Over(standings) => return (said, standings),
            step => panic!("{step:?}"),
        }
    }
}

proptest! {
    /// With honest bots each table has 18 tricks and deals each of the 36 cards once, and the
    /// messages to a bot are enough to play.
    #[test]
    fn a_bot_can_derive_the_state_from_the_protocol(pairs in 1..6_u32, seed: [u8; 32], salt: [u64; 2]) {
        let played = honest(pairs, seed, |view, player| view.policy(salt[player]));
        let [first, second] = &played.views.0;
        let mut points = [0_i64; 2];
        for (one, other) in first.iter().zip(second) {
            prop_assert!(one.over && other.over);
            prop_assert!(one.hand.is_empty() && other.hand.is_empty());
            prop_assert_eq!((one.won, one.lost), (other.lost, other.won));
            prop_assert_eq!(one.won + one.lost, TRICKS);
            prop_assert_eq!(one.trump, other.trump);
            let cards: BTreeSet<_> = one.dealt.iter().chain(&other.dealt).collect();
            prop_assert_eq!(cards.len(), DECK);
            prop_assert_eq!((one.dealt.len(), other.dealt.len()), (DECK / 2, DECK / 2));
            points[0] += (i64::from(one.won) - i64::from(one.lost)).signum();
            points[1] += i64::from(one.won) - i64::from(one.lost);
        }
        prop_assert_eq!(&played.scores, &[points.to_vec(), points.map(|sum| -sum).to_vec()]);
        let result = format!("\\nresult: {}", -points[0]);
        prop_assert!(played.transcript[0].ends_with(&result));
    }

    /// The second table of a pair is the first with the seats exchanged, card by card.
    #[test]
    fn exchanged_seats_cancel_luck(pairs in 1..6_u32, seed: [u8; 32], salt: u64) {
        let played = honest(pairs, seed, |view, _| view.policy(salt));
        prop_assert_eq!(&played.scores, &[vec![0, 0], vec![0, 0]]);
        let [first, second] = &played.views.0;
        for index in (0..first.len()).step_by(2) {
            prop_assert_eq!(&first[index].history, &second[index + 1].history);
            prop_assert_eq!(&second[index].history, &first[index + 1].history);
        }
    }

    /// With any replies, the match ends, every trick has a winner, and one side wins what the other
    /// loses. The same replies give the same match.
    #[test]
    fn every_match_ends((pairs, seed, replies) in chaos()) {
        let mut game = start(pairs, seed);
        let (said, standings) = run(&mut game, &replies);
        for table in game.tables() {
            prop_assert_eq!(table.turn(), None);
            let [own, theirs] = Player::ALL.map(|player| table.tricks(player));
            prop_assert_eq!(own + theirs, TRICKS);
        }
        let [one, other] = &standings[..] else { panic!("two seats") };
        let sums = one.score.0.iter().zip(&other.score.0).map(|(own, theirs)| own + theirs);
        prop_assert_eq!(sums.collect::<Vec<_>>(), [0, 0]);
        prop_assert!(one.score.0[0].unsigned_abs() <= u64::from(2 * pairs));
        prop_assert!(one.forfeit.is_none() || other.forfeit.is_none());
        prop_assert_eq!(run(&mut start(pairs, seed), &replies), (said, standings));
    }

    /// An illegal card costs exactly the remaining tricks, at any time.
    #[test]
    fn a_bad_card_loses_the_remaining_tricks(seed: [u8; 32], plies in 0..40_usize, bad in 0..DECK) {
        let mut game = start(1, seed);
        let mut table = game.tables()[0].clone();
        for _ in 0..plies.min(2 * usize::from(TRICKS) - 1) {
            let card = table.playable().last();
            table.play(card);
        }
        let player = table.turn().unwrap();
        let own = table.tricks(player);
        let rest = TRICKS - table.tricks(player);
        let bad = Card::all().nth(bad).filter(|bad| !table.playable().any(|card| card == *bad));
        table.play(bad);
        prop_assert_eq!(table.turn(), None);
        prop_assert_eq!((table.tricks(player), table.tricks(player.other())), (own, rest));
        prop_assert_eq!(table.tell(player.other()).matches('.').count(), 1);
        prop_assert_eq!(table.tell(player.other()), ".");
        prop_assert!(matches!(game.step(), Step::Say(_)));
    }
}
