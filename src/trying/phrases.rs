//! What can be said to a bot: every line of each protocol, as an example, with a sentence about it.
//! The words are those of `docs/bots`.

use arbiter_games::GameName;

/// A line to start from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrase {
    /// The line; `\n` in it stands for the end of a line within one protocol unit.
    pub(crate) line: &'static str,
    /// What it means, and what is due.
    pub(crate) meaning: &'static str,
}

const fn phrase(line: &'static str, meaning: &'static str) -> Phrase {
    Phrase { line, meaning }
}

/// The phrases of a game's protocol, in the order in which a match comes to them.
pub(crate) fn of(game: GameName) -> &'static [Phrase] {
    match game {
        GameName::Wojna => &WOJNA,
        GameName::Bitwa => &BITWA,
        GameName::Tricks => &TRICKS,
        GameName::Blackjack => &BLACKJACK,
        GameName::Gomoku => &GOMOKU,
    }
}

const WOJNA: [Phrase; 9] = [
    phrase("your_number 1", "Yours is seat 1; once, at the start. Due: ="),
    phrase("setdeck 8 1 1 2 2 3 3 4 4", "A new deal begins, with these eight cards. Due: ="),
    phrase(
        "time_settings 30000 1000 3000 100",
        "30 s for 1000 moves, 3 s for each 100 more. Due: =",
    ),
    phrase("setstate 4 4 1 1 1 1", "An auction: 4 cards in the pot, one left to each seat. Due: ="),
    phrase("topcard 1 4", "Before the first play your card; after it a card shown. Due: ="),
    phrase("time_left 30000 1000", "30 s are left for the next 1000 moves. Due: ="),
    phrase("genmove 1", "Your move. Due: = pass, = check or = raise 1, 2 or 3"),
    phrase("play 1 check", "Seat 1 has made this move; your own come back too. Due: ="),
    phrase("quit", "The match is over; half a second is left. Nothing is due."),
];

const BITWA: [Phrase; 5] = [
    phrase(
        "set_game 8 6 100 2 ######## #.A..a.# #AA#.aa# #BB.#bb# #.B..b.# ########",
        "The board: 8 columns, 6 rows, 100 rounds, strength 2, then row by row. Due: =",
    ),
    phrase("time_left 180000", "180 s are left for the whole game. Due: ="),
    phrase("gen_move A", "An order for your division A. Due: = A xd yd dx dy p"),
    phrase("play A 1 3 2 1 1 1", "Division A got this order; your own come back too. Due: ="),
    phrase("quit", "The game is over; half a second is left. Nothing is due."),
];

const TRICKS: [Phrase; 5] = [
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

const BLACKJACK: [Phrase; 4] = [
    phrase(
        "10 73 J#Q72A39 10 170",
        "10 points with 7 and 3; the dealer shows J; 10 staked, 170 left. Due: H, S, D or B n",
    ),
    phrase("20 73K J#Q72A39KT 10 170", "20 points after a K was drawn. Due: H, S or B n"),
    phrase("21 QA J#Q72A39 10 300", "21 in two cards. Due: H, S, D or B n"),
    phrase("15 96 6#9648 10 0", "15 points, and no chips left. Due: H or S"),
];

const GOMOKU: [Phrase; 6] = [
    phrase("A []", "Open the game. Due: (X,Y)(X,Y)(X,Y), black, black and white"),
    phrase(
        "B [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "Answer the opening. Due: \"B\", or \"W\" (X,Y), or (X,Y)(X,Y)",
    ),
    phrase(
        "C [((0,0),\"B\"),((0,1),\"W\"),((1,0),\"B\"),((1,1),\"W\"),((14,14),\"B\")]",
        "Choose your colour. Due: \"B\" or \"W\"",
    ),
    phrase(
        "0 [((0,0),\"B\"),((0,1),\"W\"),((14,14),\"B\")]",
        "The first stone of the game phase, a black one. Due: (X,Y)",
    ),
    phrase("EXIT opponent", "The opponent has won; half a second is left. Nothing is due."),
    phrase("EXIT TIE", "Nobody has won; half a second is left. Nothing is due."),
];
