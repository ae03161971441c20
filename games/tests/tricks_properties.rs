//! Properties of tricks: a bot can derive the state of every table from its messages, every trick
//! is counted, and exchanged seats cancel luck.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::collections::BTreeSet;

use arbiter_games::tricks::{Card, DECK, HAND, Match, Params, Player, Suit, TRICKS, Table};
use arbiter_games::{
    ExpectedReply, Forfeit, MatchState as _, Micros, SeatResult, Seed, Step, read_rules, tricks,
};
use dialogue::{Reply, scores};
use proptest::collection::vec;
use proptest::prelude::*;

/// The state of one table, derived from the messages to a seat.
#[derive(Default)]
struct View {
    hand: Vec<Card>,
    trump: Option<Suit>,
    /// All cards dealt to this seat.
    dealt: Vec<Card>,
    /// The seat's card on the table.
    own_card: Option<Card>,
    /// The opponent's card on the table.
    opponent_card: Option<Card>,
    /// Whether the seat's card is the attack.
    attacks: bool,
    won: u8,
    lost: u8,
    over: bool,
    /// All messages and played cards. A `<` precedes each card of the seat.
    history: String,
}

impl View {
    /// Applies and checks a message to the seat.
    fn apply(&mut self, state: &str) {
        self.history.push_str(state);
        let mut rest = state;
        while let Some(first) = rest.chars().next() {
            assert!(!self.over, "{state} after the end");
            match first {
                '>' => {
                    assert!(self.opponent_card.replace(rest[1..3].parse().unwrap()).is_none());
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

    /// Ends a trick. `won` is the result in the message.
    fn score(&mut self, won: bool) {
        let own = self.own_card.take().unwrap();
        let opponent = self.opponent_card.take().unwrap();
        let is_higher =
            |card: Card, other: Card| card.suit() == other.suit() && card.rank() > other.rank();
        let is_trump_against = |card: Card, other: Card| {
            Some(card.suit()) == self.trump && Some(other.suit()) != self.trump
        };
        let expected = if self.attacks {
            !(is_higher(opponent, own) || is_trump_against(opponent, own))
        } else {
            is_higher(own, opponent) || is_trump_against(own, opponent)
        };
        assert_eq!(won, expected, "{}", self.history);
        self.won += u8::from(won);
        self.lost += u8::from(!won);
    }

    /// The legal cards.
    fn playable(&self) -> Vec<Card> {
        let has_suit =
            |card: &&Card| self.opponent_card.is_some_and(|other| other.suit() == card.suit());
        let following: Vec<_> = self.hand.iter().filter(has_suit).copied().collect();
        if following.is_empty() { self.hand.clone() } else { following }
    }

    fn play(&mut self, card: Card) {
        self.hand.retain(|other| *other != card);
        self.own_card = Some(card);
        self.attacks = self.opponent_card.is_none();
        self.history.push('<');
        self.history.push_str(&card.to_string());
    }

    /// A choice that depends only on the history of this table.
    fn policy(&self, salt: u64) -> Card {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = self.history.bytes().fold(salt ^ 0xcbf2_9ce4_8422_2325, mix);
        let cards = self.playable();
        cards[usize::try_from(hash >> 33).unwrap() % cards.len()]
    }
}

/// The seats' views of all tables.
struct Views([Vec<View>; 2]);

impl Views {
    fn new(tables: usize) -> Self {
        Self([(); 2].map(|()| (0..tables).map(|_| View::default()).collect()))
    }

    /// Applies a message to a seat. Returns the indices of the tables that wait for this seat.
    fn apply(&mut self, player: usize, text: &str) -> Vec<usize> {
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
            view.apply(state);
            let (lost, won) = score.split_once(':').unwrap();
            let lost: u8 = lost.parse().unwrap();
            let won: u8 = won.parse().unwrap();
            assert_eq!((lost, won), (view.lost, view.won));
            assert!(view.own_card.is_none());
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
fn play_honest(pairs: u32, seed: [u8; 32], policy: impl Fn(&View, usize) -> Card) -> Played {
    let mut game = start(pairs, seed);
    let mut views = Views::new(game.tables().len());
    let mut last = None;
    let played = loop {
        let has_turn = |player| game.tables().iter().any(|table| table.turn() == Some(player));
        let [first, second] = Player::ALL.map(has_turn);
        let step = game.step();
        let Step::Send(message) = step else { panic!("{step:?}") };
        let player = message.seat.index();
        let waiting = views.apply(player, &message.text);
        if message.expected_reply == ExpectedReply::None {
            assert!(!first && !second && player == 0);
            break game;
        }
        assert!(!waiting.is_empty());
        let has_other_turn = if player == 0 { second } else { first };
        assert!(last != Some(player) || !has_other_turn, "seat {} is asked twice", message.seat);
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
    let played =
        dialogue::play(&mut game, |message| panic!("a request after the end: {message:?}"));
    for line in &played.transcript {
        if let Some(text) = line.strip_prefix("2> ") {
            views.apply(1, &text.replace("\\n", "\n"));
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

/// A reply: usually one word for each table, sometimes any text or a forfeit.
fn reply(tables: usize) -> impl Strategy<Value = Reply> {
    let key = prop::sample::select(&["", "move="][..]);
    let words =
        (key, vec(word(), tables)).prop_map(|(key, words)| Ok(key.to_owned() + &words.join(" ")));
    let reply = prop_oneof![
        40 => words,
        1 => any::<String>().prop_map(Ok),
        1 => prop::sample::select(&Forfeit::ALL[..]).prop_map(Err),
    ];
    (reply, (0..3_000_000_i64).prop_map(Micros))
}

/// A number of pairs of tables, a seed, and replies in turn. `None` is an honest reply.
fn arbitrary_replies() -> impl Strategy<Value = (u32, [u8; 32], Vec<Option<Reply>>)> {
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

/// Plays a match with these replies, repeated in turn. Returns all messages and errors, and the
/// results.
fn run(game: &mut Match, replies: &[Option<Reply>]) -> (Vec<String>, Vec<SeatResult>) {
    let mut replies = replies.iter().cycle();
    let mut dialogue = Vec::new();
    loop {
        match game.step() {
            Step::Send(message) => {
                dialogue.push(format!("{} {}", message.seat, message.text));
                if message.expected_reply == ExpectedReply::None {
                    continue;
                }
                let honest =
                    (Ok(last_cards(game, Player::ALL[message.seat.index()])), Micros::ZERO);
                let (reply, charged) = replies.next().unwrap().as_ref().unwrap_or(&honest);
                let outcome =
                    game.receive_reply(reply.as_deref().map_err(|forfeit| *forfeit), *charged);
                dialogue.extend(outcome.err().map(|illegal| illegal.to_string()));
            }
            Step::Over(standings) => return (dialogue, standings),
            step => panic!("{step:?}"),
        }
    }
}

proptest! {
    /// With honest bots each table has 18 tricks and deals each of the 36 cards once. A bot can
    /// choose legal cards from its messages alone.
    #[test]
    fn a_bot_can_derive_the_state_from_the_protocol(
        pairs in 1..6_u32,
        seed: [u8; 32],
        salt: [u64; 2],
    ) {
        let played = play_honest(pairs, seed, |view, player| view.policy(salt[player]));
        let [first, second] = &played.views.0;
        let mut points = [0_i64; 2];
        for (first, second) in first.iter().zip(second) {
            prop_assert!(first.over && second.over);
            prop_assert!(first.hand.is_empty() && second.hand.is_empty());
            prop_assert_eq!((first.won, first.lost), (second.lost, second.won));
            prop_assert_eq!(first.won + first.lost, TRICKS);
            prop_assert_eq!(first.trump, second.trump);
            let cards: BTreeSet<_> = first.dealt.iter().chain(&second.dealt).collect();
            prop_assert_eq!(cards.len(), DECK);
            prop_assert_eq!((first.dealt.len(), second.dealt.len()), (DECK / 2, DECK / 2));
            points[0] += (i64::from(first.won) - i64::from(first.lost)).signum();
            points[1] += i64::from(first.won) - i64::from(first.lost);
        }
        prop_assert_eq!(&played.scores, &[points.to_vec(), points.map(|sum| -sum).to_vec()]);
        let result = format!("\\nresult: {}", -points[0]);
        prop_assert!(played.transcript[0].ends_with(&result));
    }

    /// If both seats use the same policy, the tables of a pair have the same cards with the seats
    /// exchanged.
    #[test]
    fn exchanged_seats_cancel_luck(pairs in 1..6_u32, seed: [u8; 32], salt: u64) {
        let played = play_honest(pairs, seed, |view, _| view.policy(salt));
        prop_assert_eq!(&played.scores, &[vec![0, 0], vec![0, 0]]);
        let [first, second] = &played.views.0;
        for index in (0..first.len()).step_by(2) {
            prop_assert_eq!(&first[index].history, &second[index + 1].history);
            prop_assert_eq!(&second[index].history, &first[index + 1].history);
        }
    }

    /// With any replies, the match ends, every trick has a winner, and the scores add up to 0. The
    /// same replies give the same match.
    #[test]
    fn every_match_ends((pairs, seed, replies) in arbitrary_replies()) {
        let mut game = start(pairs, seed);
        let (dialogue, standings) = run(&mut game, &replies);
        for table in game.tables() {
            prop_assert_eq!(table.turn(), None);
            let [first, second] = Player::ALL.map(|player| table.tricks(player));
            prop_assert_eq!(first + second, TRICKS);
        }
        let [first, second] = &standings[..] else { panic!("two seats") };
        let sums = first.score.0.iter().zip(&second.score.0).map(|(left, right)| left + right);
        prop_assert_eq!(sums.collect::<Vec<_>>(), [0, 0]);
        prop_assert!(first.score.0[0].unsigned_abs() <= u64::from(2 * pairs));
        prop_assert!(first.forfeit.is_none() || second.forfeit.is_none());
        prop_assert_eq!(run(&mut start(pairs, seed), &replies), (dialogue, standings));
    }

    /// An illegal card costs exactly the remaining tricks, at any time.
    #[test]
    fn an_illegal_card_loses_the_remaining_tricks(
        seed: [u8; 32],
        plies in 0..40_usize,
        index in 0..DECK,
    ) {
        let mut game = start(1, seed);
        let mut table = game.tables()[0].clone();
        for _ in 0..plies.min(2 * usize::from(TRICKS) - 1) {
            let card = table.playable().last();
            table.play(card);
        }
        let player = table.turn().unwrap();
        let tricks = table.tricks(player);
        let is_illegal = |card: &Card| !table.playable().any(|playable| playable == *card);
        let card = Card::all().nth(index).filter(is_illegal);
        table.play(card);
        prop_assert_eq!(table.turn(), None);
        prop_assert_eq!(table.tricks(player), tricks);
        prop_assert_eq!(table.tricks(player.other()), TRICKS - tricks);
        prop_assert_eq!(table.take_text(player.other()).matches('.').count(), 1);
        prop_assert_eq!(table.take_text(player.other()), ".");
        prop_assert!(matches!(game.step(), Step::Send(_)));
    }
}
