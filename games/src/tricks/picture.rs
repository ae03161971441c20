//! The picture of tricks: the score of each seat, and for each table both hands with the cards on
//! the table between them.
//!
//! All tables are played at the same time, and a reply plays a card at many of them. The tables of
//! the last reply are marked.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{Card, LastReply, Match, Player, RESULT, Suit, TRICKS, Table, moves};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::EntrantName;
use crate::picture::{
    Item, Key, Line, Part, Picture, Place, PlacesPicture, can_see, count, list, name, number,
    seat_name,
};

/// The most tables whose won tricks are drawn as stacks, too. More would make pictures large.
const STACKED_TABLES: usize = 8;

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], viewer: Option<Seat>) -> Picture {
        let seats = Player::ALL.map(|player| player_place(self, names, player)).to_vec();
        let table = |(index, table)| table_place(self, names, viewer, index, table);
        let tables = self.tables().iter().enumerate().map(table).collect();
        let is_few = self.tables().len() <= STACKED_TABLES;
        let class = if is_few { "tables few" } else { "tables" };
        let parts = vec![
            Part::Places(PlacesPicture { class: "tricks", places: seats }),
            Part::Places(PlacesPicture { class, places: tables }),
            Part::Line(Line::new("quiet", vec![Item::Text(legend())])),
        ];
        Picture { caption: caption(self, names), parts }
    }

    fn picture_key(&self) -> Key {
        [self.replies, 0, 0, 0, 0, 0]
    }

    /// The trick of the slowest table.
    fn chapter(&self) -> Option<String> {
        let tables = self.tables().iter().filter(|table| table.turn().is_some());
        let trick = tables.map(|table| finished(table) + 1).min().unwrap_or(TRICKS);
        Some(format!("Trick {trick}"))
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.lines().any(|line| line.starts_with(RESULT))
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self, seat)
    }

    fn form_reply(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::reply(self, seat, fields)
    }

    fn warn(&self, seat: Seat, reply: &str) -> Result<(), String> {
        moves::warn(self, seat, reply)
    }
}

/// The sign of a suit. Black and red suits alternate.
pub(super) fn sign(suit: Suit) -> char {
    match suit {
        Suit::W => '♠',
        Suit::X => '♥',
        Suit::Y => '♣',
        Suit::Z => '♦',
    }
}

/// A card as its rank and the sign of its suit.
pub(super) fn face(card: Card) -> String {
    format!("{}{}", card.rank(), sign(card.suit()))
}

/// The class of a card in its colour.
pub(super) fn colour(card: Card) -> &'static str {
    if matches!(card.suit(), Suit::X | Suit::Z) { "r" } else { "" }
}

/// The letters of the protocol and the signs of the suits.
fn legend() -> String {
    let suits = Suit::ALL.map(|suit| format!("{} is {}", suit.letter(), sign(suit)));
    format!("In messages {}.", list(&suits))
}

fn bot(names: &[EntrantName], player: Player) -> &str {
    name(names, Seat::from_index(player.index()))
}

/// The number of finished tricks of a table.
fn finished(table: &Table) -> u8 {
    Player::ALL.iter().map(|player| table.tricks(*player)).sum()
}

/// What the last reply did at the tables that waited for it.
#[derive(Default)]
struct Effect {
    attacks: u64,
    taken: u64,
    lost: u64,
    conceded: u64,
}

impl Effect {
    fn of(game: &Match, reply: &LastReply) -> Self {
        let mut effect = Self::default();
        for table in waited(game, reply) {
            let outcome = match (table.conceded(), table.attack(), table.last_trick()) {
                (Some(_), _, _) => &mut effect.conceded,
                (None, Some(_), _) => &mut effect.attacks,
                (None, None, Some(trick)) if trick.winner == reply.player => &mut effect.taken,
                _ => &mut effect.lost,
            };
            *outcome += 1;
        }
        effect
    }
}

/// The tables that waited for a reply.
fn waited<'a>(game: &'a Match, reply: &'a LastReply) -> impl Iterator<Item = &'a Table> {
    let tables = game.tables().iter().zip(&reply.waited);
    tables.filter(|(_, waited)| **waited).map(|(table, _)| table)
}

/// The number of tables that wait for a player.
fn waiting(game: &Match, player: Player) -> u64 {
    number(game.tables().iter().filter(|table| table.turn() == Some(player)).count())
}

/// The number of finished tables that a player has won.
fn won_tables(game: &Match, player: Player) -> u64 {
    let won = |table: &&Table| {
        table.turn().is_none() && table.tricks(player) > table.tricks(player.other())
    };
    number(game.tables().iter().filter(won).count())
}

fn all_tricks(game: &Match, player: Player) -> u64 {
    game.tables().iter().map(|table| u64::from(table.tricks(player))).sum()
}

fn player_place(game: &Match, names: &[EntrantName], player: Player) -> Place {
    let tables = number(game.tables().len());
    let won = won_tables(game, player);
    let tricks = all_tricks(game, player);
    let taken = match &game.last_reply {
        Some(reply) if game.forfeit.is_none() => {
            let effect = Effect::of(game, reply);
            if reply.player == player { effect.taken } else { effect.lost }
        }
        _ => 0,
    };
    let is_turn = !game.is_over() && game.turn() == player;
    let state: Cow<_> = match game.forfeit {
        Some((loser, forfeit)) if loser == player => format!("forfeited: {forfeit}").into(),
        _ if is_turn => "to play".into(),
        _ => "".into(),
    };
    let seat = Seat::from_index(player.index());
    let lines = vec![
        Line::heading(seat_name(names, seat), state),
        Line::amount(format!("Tables won {won}"), Item::Stack { count: won, full: tables }, 0),
        Line::amount(
            format!("Tricks {tricks}"),
            // A piece for each trick would be too thin.
            Item::Stack { count: tricks / tables.max(1), full: TRICKS.into() },
            i64::try_from(taken).unwrap_or(i64::MAX),
        ),
    ];
    let turn = if is_turn { " turn" } else { "" };
    Place { class: format!("seat{seat}{turn}").into(), lines }
}

fn table_place(
    game: &Match,
    names: &[EntrantName],
    viewer: Option<Seat>,
    index: usize,
    table: &Table,
) -> Place {
    let trump: Cow<_> = match table.trump() {
        Some(suit) => format!("trump {}", sign(suit)).into(),
        None => "no trump".into(),
    };
    let has_stacks = game.tables().len() <= STACKED_TABLES;
    // The two lines of a finished table without cards and stacks would only repeat its result.
    let is_shown = |player| table.turn().is_some() || has_stacks || !table.hand(player).is_empty();
    let [first, second] =
        Player::ALL.map(|player| is_shown(player).then(|| hand(table, player, viewer, has_stacks)));
    let trick = u8::min(finished(table) + 1, TRICKS);
    let state = match table.turn() {
        Some(_) => format!("Trick {trick}, {} in the pack", table.pack()),
        None => format!("Over: {}", table_result(table, names)),
    };
    let title = format!("Table {}, deal {}", index + 1, index / 2 + 1);
    let all_lines = [
        Some(Line::heading(title, trump)),
        first,
        Some(Line::new("hand trick", middle(table, names))),
        second,
        Some(Line::new("quiet", vec![Item::Text(state)])),
    ];
    let lines = all_lines.into_iter().flatten().collect();
    let is_new = game.last_reply.as_ref().is_some_and(|reply| reply.waited[index]);
    let class = match (is_new, table.turn()) {
        (true, _) => "new",
        (false, None) => "out",
        (false, Some(_)) => "",
    };
    Place { class: class.into(), lines }
}

/// Who has won a finished table.
fn table_result(table: &Table, names: &[EntrantName]) -> String {
    let [first, second] = Player::ALL.map(|player| table.tricks(player));
    match first.cmp(&second) {
        Ordering::Equal => format!("a tie, {} each", count(first, "trick")),
        Ordering::Greater => {
            format!("{} wins by {first} tricks to {second}", bot(names, Player::First))
        }
        Ordering::Less => {
            format!("{} wins by {second} tricks to {first}", bot(names, Player::Second))
        }
    }
}

/// A card in the colour of its suit, marked if it is a trump. `mark` is another class or empty.
fn card(table: &Table, card: Card, mark: &str) -> Item {
    let trump = if table.trump() == Some(card.suit()) { "t" } else { "" };
    let classes = [colour(card), trump, mark];
    let classes: Vec<_> = classes.into_iter().filter(|class| !class.is_empty()).collect();
    Item::card(face(card), classes.join(" "))
}

/// The cards of a player and its tricks.
fn hand(table: &Table, player: Player, viewer: Option<Seat>, has_stack: bool) -> Line {
    let seat = Seat::from_index(player.index());
    let mut cards = table.hand(player).to_vec();
    cards.sort_unstable();
    let visible = can_see(viewer, seat);
    let item = |value| if visible { card(table, value, "") } else { Item::FaceDown };
    let mut items: Vec<_> = cards.into_iter().map(item).collect();
    let tricks = table.tricks(player);
    items.extend(has_stack.then_some(Item::Stack { count: tricks.into(), full: TRICKS.into() }));
    items.push(Item::label(count(tricks, "trick")));
    let turn = if table.turn() == Some(player) { " turn" } else { "" };
    Line::new(format!("hand seat{seat}{turn}"), items)
}

/// The cards between the players: the present attack, or the last trick, and who took it.
fn middle(table: &Table, names: &[EntrantName]) -> Vec<Item> {
    if let (Some(attack), Some(defender)) = (table.attack(), table.turn()) {
        let attacker = bot(names, defender.other());
        return vec![card(table, attack, ""), Item::label(format!("{attacker} attacks"))];
    }
    if let Some(loser) = table.conceded() {
        return vec![Item::label(format!("{} lost the rest", bot(names, loser)))];
    }
    let Some(trick) = table.last_trick() else {
        let attacker = table.turn().map(|player| format!("{} begins", bot(names, player)));
        return vec![Item::label(attacker.unwrap_or_default())];
    };
    let mark = |player| if trick.winner == player { "best" } else { "" };
    vec![
        card(table, trick.attack, mark(trick.attacker)),
        card(table, trick.defence, mark(trick.attacker.other())),
        Item::label(format!("{} took it", bot(names, trick.winner))),
    ]
}

fn caption(game: &Match, names: &[EntrantName]) -> String {
    let tables = number(game.tables().len());
    let next = if game.is_over() {
        final_words(game, names)
    } else {
        let at = count(waiting(game, game.turn()), "table");
        format!("{} is to play at {at}", bot(names, game.turn()))
    };
    let Some(reply) = &game.last_reply else {
        return format!("{} are dealt, two for each deal; {next}.", count(tables, "table"));
    };
    format!("{}; {next}.", reply_words(game, names, reply))
}

/// What the last reply did.
fn reply_words(game: &Match, names: &[EntrantName], reply: &LastReply) -> String {
    let player = bot(names, reply.player);
    if let Some((loser, forfeit)) = game.forfeit {
        let loser = bot(names, loser);
        return format!("{loser} forfeits ({forfeit}) and loses all tables that were not over");
    }
    let mut tables = (1..).zip(game.tables()).zip(&reply.waited).filter(|(_, waited)| **waited);
    if let (Some(((number, table), _)), None) = (tables.next(), tables.next()) {
        return format!("Table {number}: {}", table_words(table, player, reply.player));
    }
    let Effect { attacks, taken, lost, conceded } = Effect::of(game, reply);
    let at = count(number(waited(game, reply).count()), "table");
    let effects = [
        (attacks, count(attacks, "attack")),
        (taken, format!("{} taken", count(taken, "trick"))),
        (lost, format!("{} lost", count(lost, "trick"))),
        (conceded, format!("{} lost by illegal cards", count(conceded, "table"))),
    ];
    let effects = effects.into_iter().filter(|(number, _)| *number > 0).map(|(_, text)| text);
    format!("{player} plays at {at}: {}", list(&effects.collect::<Vec<_>>()))
}

/// What a reply did at its only table.
fn table_words(table: &Table, bot: &str, player: Player) -> String {
    if table.conceded().is_some() {
        return format!("{bot} plays an illegal card and loses the rest");
    }
    if let Some(attack) = table.attack() {
        return format!("{bot} attacks with {}", face(attack));
    }
    let Some(trick) = table.last_trick() else { return format!("{bot} plays") };
    let outcome = if trick.winner == player { "takes" } else { "loses" };
    let attack = face(trick.attack);
    let defence = face(trick.defence);
    format!("{bot} answers {attack} with {defence} and {outcome} trick {}", finished(table))
}

/// The result of the match. The tables decide, and if both have won as many, the tricks.
fn final_words(game: &Match, names: &[EntrantName]) -> String {
    let total = |player| (won_tables(game, player), all_tricks(game, player));
    let [first, second] = Player::ALL;
    let (winner, loser) =
        if total(first) < total(second) { (second, first) } else { (first, second) };
    let (tables, tricks) = total(winner);
    let (loser_tables, loser_tricks) = total(loser);
    let winner_name = bot(names, winner);
    let result = if tables > loser_tables {
        format!(
            "{winner_name} wins by {tables} tables to {loser_tables} ({tricks} tricks to \
             {loser_tricks})"
        )
    } else if tricks > loser_tricks {
        format!(
            "{winner_name} wins by {tricks} tricks to {loser_tricks}, with {} each",
            count(tables, "table")
        )
    } else {
        format!("a tie, {} and {} each", count(tables, "table"), count(tricks, "trick"))
    };
    format!("all tables are over: {result}")
}
