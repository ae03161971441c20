//! A built-in game behind the protocol of packages: it answers the questions that Arbiter asks the
//! rules of a package.
//!
//! Built-in games keep their own clocks, so each request says how long its reply may take, and the
//! game hears the charged time. They ask one seat at a time.

use arbiter_games::move_form::{Field, FormFields, REPLY, SquareField};
use arbiter_games::{
    Allowance, ExpectedReply, Forfeit, Game, Illegal, MatchState, Message, Micros, Note, Params,
    Seat, SeatResult, Step, Value, Values,
};

use crate::protocol::{
    Action, Answer, Heard, LegalReplies, MAX_LEGAL, NewMatch, PROTOCOL_VERSION, Question,
};

/// A built-in game that answers as the rules of a package.
#[derive(Debug)]
pub struct ServedGame {
    game: Game,
    running: Option<Running>,
}

/// A match in progress.
#[derive(Debug)]
struct Running {
    state: Box<dyn MatchState>,
    /// The seat that owes a reply, and whether it is only an acknowledgement.
    asked: Option<(Seat, ExpectedReply)>,
    /// Each seat's first forfeit, as Arbiter sees them.
    forfeits: Vec<Option<Forfeit>>,
}

impl ServedGame {
    /// The game, before its first match.
    pub fn new(game: Game) -> Self {
        Self { game, running: None }
    }

    /// Answers a question: a line without its newline, as the answer is.
    ///
    /// # Errors
    /// Why the question has no answer.
    pub fn answer(&mut self, question: &str) -> Result<String, String> {
        let question = serde_json::from_str(question)
            .map_err(|error| format!("not a question of the protocol: {error}"))?;
        let answer = match question {
            Question::New(new) => serde_json::to_string(&self.begin(&new)?),
            Question::Heard(heard) => {
                let running = self.running.as_mut().ok_or("no match has begun")?;
                serde_json::to_string(&running.hear(&heard)?)
            }
            Question::Legal(seat) => {
                let running = self.running.as_ref().ok_or("no match has begun")?;
                serde_json::to_string(&running.legal(seat))
            }
        };
        answer.map_err(|error| error.to_string())
    }

    fn begin(&mut self, new: &NewMatch) -> Result<Answer, String> {
        let NewMatch { protocol, params, seed, bots, frames: _ } = new;
        if *protocol != PROTOCOL_VERSION {
            return Err(format!("protocol {protocol}; this program speaks {PROTOCOL_VERSION}"));
        }
        let seats = bots.len();
        let params = self.params(params.clone(), seats)?;
        let state = params.start(bots, *seed).map_err(|error| error.to_string())?;
        let launches = Seat::all(seats)
            .map(|seat| (seat, state.launch_arguments(seat)))
            .filter(|(_, arguments)| !arguments.is_empty())
            .map(|(launch, arguments)| Action::Launch { launch, arguments })
            .collect();
        let running =
            self.running.insert(Running { state, asked: None, forfeits: vec![None; seats] });
        running.go_on(launches)
    }

    /// The parameters of a match. The number of seats is that of the bots.
    fn params(&self, values: Values, seats: usize) -> Result<Params, String> {
        let values = match &self.game.seats_param {
            Some(key) => {
                let seats = i64::try_from(seats).map_err(|error| error.to_string())?;
                values.with(key, Value::from(seats))
            }
            None => values,
        };
        let values = serde_json::to_value(&values).map_err(|error| error.to_string())?;
        Params::read(&self.game, values).map_err(|error| format!("the parameters: {error}"))
    }
}

impl Running {
    /// Passes the reply of the seat that was asked to the game.
    fn hear(&mut self, heard: &[Heard]) -> Result<Answer, String> {
        let [Heard { seat, text, forfeit, charged_us }] = heard else {
            return Err(format!("{} replies; one seat was asked", heard.len()));
        };
        if self.asked.take().is_none_or(|(asked, _)| asked != *seat) {
            return Err(format!("a reply of seat {seat}, which was not asked"));
        }
        let reply = match (text, forfeit) {
            (Some(text), None) => Ok(text.as_str()),
            (None, Some(forfeit)) => Err(*forfeit),
            _ => return Err("a reply has either `text` or `forfeit`".to_owned()),
        };
        let charged = Micros(charged_us.ok_or("a reply to a request with a time has none")?);
        let outcome = self.state.receive_reply(reply, charged);
        let forfeit = forfeit.or(outcome.is_err().then_some(Forfeit::Illegal));
        let first = &mut self.forfeits[seat.index()];
        *first = first.or(forfeit);
        let illegal = outcome.err().map(|Illegal(why)| Action::Illegal { illegal: *seat, why });
        self.go_on(illegal.into_iter().collect())
    }

    /// Adds what the game does up to its next request or its end.
    fn go_on(&mut self, mut actions: Vec<Action>) -> Result<Answer, String> {
        loop {
            match self.state.step() {
                Step::Send(message) => {
                    let Message { seat, expected_reply, .. } = message;
                    actions.push(send(message));
                    if expected_reply != ExpectedReply::None {
                        self.asked = Some((seat, expected_reply));
                        return Ok(Answer { actions });
                    }
                }
                Step::Dismiss(seat) => actions.push(Action::Dismiss { dismiss: seat }),
                Step::Note(note) => actions.push(tell_people(note)),
                Step::Illegal(seat, Illegal(why)) => {
                    self.forfeits[seat.index()].get_or_insert(Forfeit::Illegal);
                    actions.push(Action::Illegal { illegal: seat, why });
                }
                Step::Fault(cause) => return Err(format!("the rules failed: {cause}")),
                Step::Over(results) => {
                    actions.push(self.over(results));
                    return Ok(Answer { actions });
                }
            }
        }
    }

    fn over(&self, results: Vec<SeatResult>) -> Action {
        let forfeits: Vec<_> = results.iter().map(|result| result.forfeit).collect();
        let bad_answers: Vec<_> = results.iter().map(|result| result.bad_answers).collect();
        Action::Over {
            over: results.into_iter().map(|result| result.score.0).collect(),
            forfeits: (forfeits != self.forfeits).then_some(forfeits),
            bad_answers: bad_answers.iter().any(|count| *count > 0).then_some(bad_answers),
        }
    }

    /// The legal replies, if buttons and squares that send a reply are all there is.
    fn legal(&self, seat: Seat) -> LegalReplies {
        let is_asked = self.asked == Some((seat, ExpectedReply::Move));
        let mut legal = is_asked.then(|| self.replies(seat)).flatten().unwrap_or_default();
        if legal.len() > MAX_LEGAL {
            legal.clear();
        }
        LegalReplies { legal }
    }

    /// The replies of a person's form. None if some of its fields are not replies.
    fn replies(&self, seat: Seat) -> Option<Vec<String>> {
        let view = self.state.view();
        let form = view.move_form(seat, &FormFields::default());
        let mut replies = Vec::new();
        for field in form.fields {
            match field {
                Field::Reply { reply, .. } => replies.push(reply),
                Field::Choice(choice) if choice.name == REPLY => {
                    replies.extend(choice.options.into_iter().map(|option| option.value));
                }
                Field::Send(_) => {}
                _ => return None,
            }
        }
        for square in form.squares {
            match square {
                SquareField::Free { name, value, sends: true, .. } => {
                    let fields = FormFields(vec![(name.to_owned(), value)]);
                    replies.push(view.reply(seat, &fields).ok()?);
                }
                SquareField::Free { .. } | SquareField::Selected { .. } => return None,
                SquareField::Occupied => {}
            }
        }
        Some(replies)
    }
}

/// The action that sends a message.
fn send(message: Message) -> Action {
    let Message { seat, text, expected_reply, allowance, tells_time: timed } = message;
    if expected_reply == ExpectedReply::None {
        return Action::Tell { tell: seat, text, timed };
    }
    let ack = expected_reply == ExpectedReply::Ack;
    let (move_us, bank_us) = match allowance {
        Allowance::Move(Micros(limit)) => (Some(limit), None),
        Allowance::Bank(Micros(bank)) => (None, Some(bank)),
    };
    Action::Ask { ask: seat, text, timed, ack, move_us, bank_us }
}

/// The action that reports an event. Cards and chips become words.
fn tell_people(note: Note) -> Action {
    match note {
        Note::Text { note } => Action::Note { note },
        Note::Frame { frame, viewer } => Action::Frame { frame, viewer },
        Note::Hand { hand, dealer, chips } => {
            let chips: Vec<_> = chips.iter().map(ToString::to_string).collect();
            let chips = chips.join(", ");
            Action::Note { note: format!("hand {hand}: the dealer has {dealer}; chips: {chips}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::Games;

    use super::*;

    fn served(name: &str) -> ServedGame {
        ServedGame::new(Games::built_in().find(name).unwrap())
    }

    fn new(params: &str, bots: &str) -> String {
        let seed = "07".repeat(32);
        format!(
            r#"{{"new":{{"protocol":1,"params":{params},"seed":"{seed}","bots":{bots},"frames":false}}}}"#
        )
    }

    #[test]
    fn a_built_in_game_answers_the_protocol() {
        let mut gomoku = served("gomoku");
        let answer = gomoku.answer(&new(r#"{"move_limit":"1s"}"#, r#"["a","b"]"#)).unwrap();
        assert!(answer.starts_with(r#"{"do":[{"launch":1,"arguments":["b","#), "{answer}");
        assert!(answer.ends_with(r#"{"ask":1,"text":"A []","move_us":1000000}]}"#), "{answer}");
        assert_eq!(gomoku.answer(r#"{"legal":1}"#).unwrap(), r#"{"legal":[]}"#);
        let reply = r#"{"heard":[{"seat":1,"text":"(0,0)(1,1)(2,2)","charged_us":5}]}"#;
        assert!(gomoku.answer(reply).unwrap().contains(r#"{"ask":2,"text":"B "#));
        gomoku.answer(r#"{"heard":[{"seat":2,"text":"\"B\"","charged_us":5}]}"#).unwrap();
        let legal: LegalReplies =
            serde_json::from_str(&gomoku.answer(r#"{"legal":2}"#).unwrap()).unwrap();
        assert_eq!((legal.legal.len(), legal.legal[0].as_str()), (222, "(1,0)"));
        let end = gomoku.answer(r#"{"heard":[{"seat":2,"text":"no","charged_us":5}]}"#).unwrap();
        assert!(end.starts_with(r#"{"do":[{"illegal":2,"why":"#), "{end}");
        assert!(end.ends_with(r#"{"over":[[2],[0]]}]}"#), "{end}");
    }

    #[test]
    fn bad_replies_that_are_no_forfeits_are_counted() {
        let mut blackjack = served("blackjack");
        blackjack.answer(&new(r#"{"hands":1,"chips":10}"#, r#"["a"]"#)).unwrap();
        let end =
            blackjack.answer(r#"{"heard":[{"seat":1,"forfeit":"gone","charged_us":5}]}"#).unwrap();
        assert!(end.contains(r#""note":"hand 1: the dealer has "#), "{end}");
        assert!(end.contains(r#""forfeits":[null],"bad_answers":[1]"#), "{end}");
    }

    #[test]
    fn questions_that_do_not_fit_are_refused() {
        let mut wojna = served("wojna");
        for (question, cause) in [
            ("{", "not a question of the protocol"),
            (r#"{"legal":1}"#, "no match has begun"),
            (&new("{}", r#"["a"]"#), "seats"),
            (&new(r#"{"cards":1}"#, r#"["a","b"]"#), "cards"),
            (&new("{}", r#"["a","b"]"#).replace(":1,", ":2,"), "protocol 2"),
        ] {
            let error = wojna.answer(question).unwrap_err();
            assert!(error.contains(cause), "{question}: {error}");
        }
        wojna.answer(&new("{}", r#"["a","b"]"#)).unwrap();
        let error = wojna.answer(r#"{"heard":[{"seat":2,"text":"=","charged_us":5}]}"#);
        assert!(error.unwrap_err().contains("a reply of seat 2, which was not asked"));
    }
}
