//! The dialogue with Arbiter: which requests the engines get, and what follows from their replies.

use cozy_chess::Color;
use serde_json::{Value, json};

use crate::drawing;
use crate::game::{Game, Played};
use crate::openings;

/// Maximum number of characters of a reply that a message quotes.
const MAX_QUOTED: usize = 40;

/// A match in progress. Seat 1 is White, seat 2 is Black.
pub struct Dialogue {
    /// The names of White and Black.
    names: [String; 2],
    has_frames: bool,
    /// The name of the opening, if one is played.
    opening: Option<&'static str>,
    game: Game,
    request: Request,
}

/// The last request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    /// Both engines introduce themselves.
    Uci,
    /// Both engines prepare for a game.
    IsReady,
    /// The player to move chooses a move.
    Go,
}

impl Request {
    /// The first word of the last line of a reply.
    fn end_of_reply(self) -> &'static str {
        match self {
            Self::Uci => "uciok",
            Self::IsReady => "readyok",
            Self::Go => "bestmove",
        }
    }
}

impl Dialogue {
    /// The match of a `new` question.
    pub fn new(new: &Value) -> Self {
        let name = |index: usize| new["bots"][index].as_str().expect("two bots").to_owned();
        let max_plies = new["params"]["max_plies"].as_u64().expect("a number");
        let mut dialogue = Self {
            names: [name(0), name(1)],
            has_frames: new["frames"] == true,
            opening: None,
            game: Game::new(usize::try_from(max_plies).unwrap_or(usize::MAX)),
            request: Request::Uci,
        };
        if new["params"]["openings"] == "table" {
            let opening = openings::choose(new["seed"].as_str().expect("a seed"));
            for uci in opening.moves.split(' ') {
                dialogue.game.play(uci).expect("a move of the table is legal");
            }
            dialogue.opening = Some(opening.name);
        }
        dialogue
    }

    /// The actions at the start.
    pub fn begin(&self) -> Vec<Value> {
        let [white, black] = &self.names;
        let opening = self.opening.map(|name| format!("opening: {name}"));
        let note = opening.iter().map(|opening| json!({ "note": opening }));
        let caption = match &opening {
            Some(opening) => format!("{white} (White) against {black} (Black), {opening}"),
            None => format!("{white} (White) against {black} (Black)"),
        };
        note.chain(self.frame(&caption)).chain(ask_both("uci")).collect()
    }

    /// The actions that follow the replies to the last requests.
    pub fn hear(&mut self, heard: &[Value]) -> Vec<Value> {
        let mut actions = Vec::new();
        let mut failed = [false; 2];
        for reply in heard {
            let seat = &reply["seat"];
            let problem = match reply["text"].as_str() {
                Some(text) => self.receive(text).err(),
                None => Some(None),
            };
            if let Some(why) = problem {
                failed[usize::from(*seat == 2)] = true;
                actions.extend(why.map(|why| json!({ "illegal": seat, "why": why })));
            }
        }
        if failed == [false; 2] {
            actions.extend(self.go_on());
        } else {
            actions.push(over(failed.map(|failed| if failed { 0 } else { 2 })));
        }
        actions
    }

    /// The legal replies of a seat.
    pub fn legal(&self, seat: u64) -> Vec<String> {
        let word = self.request.end_of_reply();
        if self.request != Request::Go {
            return vec![word.to_owned()];
        }
        if seat != self.seat_to_move() {
            return Vec::new();
        }
        self.game.legal_moves().iter().map(|(uci, _)| format!("{word} {uci}")).collect()
    }

    /// Takes a reply. An engine may think aloud: only the last line counts.
    ///
    /// # Errors
    /// The reason why the reply breaks the rules.
    fn receive(&mut self, text: &str) -> Result<(), Option<String>> {
        let last_line = text.trim_end().lines().next_back().unwrap_or_default();
        let mut words = last_line.split_whitespace();
        let word = self.request.end_of_reply();
        if words.next() != Some(word) {
            let why = format!("the reply must end with a line `{word}`, not {}", quote(last_line));
            return Err(Some(why));
        }
        if self.request == Request::Go {
            let uci = words.next().unwrap_or_default();
            self.game.play(uci).map_err(|_| Some(format!("{} is not a legal move", quote(uci))))?;
        }
        Ok(())
    }

    /// The actions after replies that keep to the rules.
    fn go_on(&mut self) -> Vec<Value> {
        match self.request {
            Request::Uci => {
                self.request = Request::IsReady;
                return ask_both("ucinewgame\nisready").into();
            }
            Request::IsReady => {
                self.request = Request::Go;
                return vec![self.ask_move()];
            }
            Request::Go => (),
        }
        let last_move = self.game.last_move().map(Played::numbered).unwrap_or_default();
        let Some(end) = self.game.end() else {
            let frame = self.frame(&last_move);
            return frame.into_iter().chain([self.ask_move()]).collect();
        };
        let points = end.points();
        let reason = end.reason();
        let event = match points {
            [2, 0] => format!("{reason}, {} wins", self.names[0]),
            [0, 2] => format!("{reason}, {} wins", self.names[1]),
            _ => reason.to_owned(),
        };
        let frame = self.frame(&format!("{last_move}, {event}"));
        frame.into_iter().chain([json!({ "note": event }), over(points)]).collect()
    }

    /// The request for a move. Arbiter replaces the times.
    fn ask_move(&self) -> Value {
        let moves: Vec<_> = self.game.moves().iter().map(|played| played.uci.as_str()).collect();
        let moves =
            if moves.is_empty() { String::new() } else { format!(" moves {}", moves.join(" ")) };
        let clock = "wtime ${left_ms:1} btime ${left_ms:2} \
                     winc ${increment_ms} binc ${increment_ms}";
        let text = format!("position startpos{moves}\ngo {clock}");
        json!({ "ask": self.seat_to_move(), "text": text })
    }

    fn seat_to_move(&self) -> u64 {
        match self.game.board().side_to_move() {
            Color::White => 1,
            Color::Black => 2,
        }
    }

    /// The picture of the position, if pictures are recorded.
    fn frame(&self, caption: &str) -> Option<Value> {
        self.has_frames.then(|| {
            let svg = drawing::draw(&self.game, &self.names);
            json!({ "frame": { "svg": svg, "caption": caption } })
        })
    }
}

fn ask_both(text: &str) -> [Value; 2] {
    [1, 2].map(|seat| json!({ "ask": seat, "text": text }))
}

/// The end of the match, with the points of White and Black.
fn over([white, black]: [i64; 2]) -> Value {
    json!({ "over": [[white], [black]] })
}

/// The beginning of a text in quotation marks, without control characters.
fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(openings: &str) -> Dialogue {
        Dialogue::new(&json!({
            "protocol": 1,
            "params": { "openings": openings, "max_plies": 400 },
            "seed": "0".repeat(64),
            "bots": ["alice", "b<b"],
            "frames": true,
        }))
    }

    fn both(text: &str) -> [Value; 2] {
        [1, 2].map(|seat| json!({ "seat": seat, "text": text }))
    }

    /// A match whose engines are ready, with the request for the first move.
    fn ready(openings: &str) -> (Dialogue, Value) {
        let mut dialogue = new(openings);
        assert_eq!(dialogue.legal(2), ["uciok"]);
        assert_eq!(dialogue.hear(&both("id name x\nuciok")), ask_both("ucinewgame\nisready"));
        assert_eq!(dialogue.legal(1), ["readyok"]);
        let mut actions = dialogue.hear(&both("readyok"));
        assert_eq!(actions.len(), 1);
        (dialogue, actions.remove(0))
    }

    #[test]
    fn a_match() {
        let (mut dialogue, request) = ready("start");
        let go = "go wtime ${left_ms:1} btime ${left_ms:2} \
                  winc ${increment_ms} binc ${increment_ms}";
        assert_eq!(request, json!({ "ask": 1, "text": format!("position startpos\n{go}") }));
        assert_eq!(dialogue.legal(1).len(), 20);
        assert!(dialogue.legal(2).is_empty());
        let heard = |seat: u64, text: &str| [json!({ "seat": seat, "text": text })];
        dialogue.hear(&heard(1, "bestmove f2f3"));
        dialogue.hear(&heard(2, "info depth 3\ninfo bestmove\nbestmove e7e5 ponder g2g4\r"));
        let actions = dialogue.hear(&heard(1, " bestmove  g2g4 "));
        assert_eq!(actions[0]["frame"]["caption"], "2. g4");
        let text = format!("position startpos moves f2f3 e7e5 g2g4\n{go}");
        assert_eq!(actions[1], json!({ "ask": 2, "text": text }));
        let actions = dialogue.hear(&heard(2, "bestmove d8h4"));
        assert_eq!(actions[0]["frame"]["caption"], "2… Qh4#, checkmate, b<b wins");
        assert!(actions[0]["frame"]["svg"].as_str().unwrap().contains(">b&lt;b<"));
        assert_eq!(actions[1], json!({ "note": "checkmate, b<b wins" }));
        assert_eq!(actions[2], json!({ "over": [[0], [2]] }));
    }

    #[test]
    fn an_opening_comes_first() {
        assert_eq!(new("table").begin()[0], json!({ "note": "opening: Ruy Lopez" }));
        let (_, request) = ready("table");
        assert_eq!(request["ask"], 2);
        let text = request["text"].as_str().unwrap();
        assert!(text.starts_with("position startpos moves e2e4 e7e5 g1f3 b8c6 f1b5\n"), "{text}");
    }

    #[test]
    fn replies_that_break_the_rules_lose() {
        let long = "bestmove ".to_owned() + &"♞".repeat(20_000);
        let replies =
            ["", "\n\n", "bestmove", "bestmove (none)", "bestmove e2e5", "\0\0", "readyok", &long];
        for reply in replies {
            let (mut dialogue, _) = ready("start");
            let actions = dialogue.hear(&[json!({ "seat": 1, "text": reply })]);
            assert_eq!(actions[0]["illegal"], 1);
            let why = actions[0]["why"].as_str().unwrap();
            assert!(why.len() < 200 && !why.contains('\0'), "{why}");
            assert_eq!(actions[1..], [json!({ "over": [[0], [2]] })]);
        }
    }

    #[test]
    fn forfeits_lose() {
        let forfeit = |seat: u64| json!({ "seat": seat, "forfeit": "clock" });
        let (mut dialogue, _) = ready("start");
        assert_eq!(dialogue.hear(&[forfeit(1)]), [json!({ "over": [[0], [2]] })]);
        let [first, _] = both("uciok");
        assert_eq!(new("start").hear(&[first, forfeit(2)]), [json!({ "over": [[2], [0]] })]);
        assert_eq!(new("start").hear(&[1, 2].map(forfeit)), [json!({ "over": [[0], [0]] })]);
    }
}
