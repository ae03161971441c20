//! Explains to the author of rules what is wrong with an answer.

use std::iter;

use arbiter_games::{Forfeit, Frame, Seat};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::protocol::Answer;

/// Maximum number of characters of a line that a message quotes.
const MAX_LINE: usize = 200;

/// Maximum number of characters of a value that a message quotes.
const MAX_VALUE: usize = 60;

/// The actions. The first member of each names it, the others follow in the order of the document.
const ACTIONS: [&[Member]; 8] = [
    &[required("tell", Kind::Seat), required("text", Kind::Text), optional("timed", Kind::Flag)],
    &[
        required("ask", Kind::Seat),
        required("text", Kind::Text),
        optional("timed", Kind::Flag),
        optional("ack", Kind::Flag),
        optional("move_us", Kind::Time),
        optional("bank_us", Kind::Time),
    ],
    &[required("illegal", Kind::Seat), required("why", Kind::Text)],
    &[required("dismiss", Kind::Seat)],
    &[required("note", Kind::Text)],
    &[required("frame", Kind::Frame), optional("for", Kind::Seat)],
    &[
        required("over", Kind::Scores),
        optional("forfeits", Kind::Forfeits),
        optional("bad_answers", Kind::Counts),
    ],
    &[required("launch", Kind::Seat), required("arguments", Kind::Texts)],
];

/// A member of an action.
struct Member {
    name: &'static str,
    kind: Kind,
    is_required: bool,
}

const fn required(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, is_required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, is_required: false }
}

/// The values that a member may have.
#[derive(Clone, Copy)]
enum Kind {
    Seat,
    Text,
    Flag,
    Time,
    Texts,
    Frame,
    Scores,
    Forfeits,
    Counts,
}

impl Kind {
    fn accepts(self, value: &Value) -> bool {
        fn is<T: DeserializeOwned>(value: &Value) -> bool {
            T::deserialize(value).is_ok()
        }
        match self {
            Self::Seat => is::<Seat>(value),
            Self::Text => is::<String>(value),
            Self::Flag => is::<bool>(value),
            Self::Time => is::<i64>(value),
            Self::Texts => is::<Vec<String>>(value),
            Self::Frame => is::<Frame>(value),
            Self::Scores => is::<Vec<Vec<i64>>>(value),
            Self::Forfeits => is::<Vec<Option<Forfeit>>>(value),
            Self::Counts => is::<Vec<u32>>(value),
        }
    }

    /// The values in words, in a match of this many seats.
    fn describe(self, seats: usize) -> String {
        let words = match self {
            Self::Seat => return format!("a seat, a whole number from 1 to {seats}"),
            Self::Text => "a text",
            Self::Flag => "true or false",
            Self::Time => "a whole number of microseconds",
            Self::Texts => "a list of texts",
            Self::Frame => r#"a picture, {"svg":TEXT,"caption":TEXT}"#,
            Self::Scores => "a list with a list of whole numbers for each seat",
            Self::Forfeits => {
                r#"a list with null, "clock", "illegal", "gone" or "flood" for each seat"#
            }
            Self::Counts => "a list with a number of bad replies for each seat",
        };
        words.to_owned()
    }
}

/// Parses an answer in a match of this many seats.
///
/// # Errors
/// What is wrong with it: the action, its member, and what is expected.
pub(crate) fn parse(text: &str, seats: usize) -> Result<Answer, AnswerError> {
    serde_json::from_str(text).map_err(|error| {
        let value = serde_json::from_str(text).ok();
        let explained = value.and_then(|value| explain(&value, seats));
        explained.unwrap_or_else(|| AnswerError::Whole(error.to_string()))
    })
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// One of its actions, which the text quotes.
    Action(String),
    /// The answer as a whole.
    Whole(String),
}

impl AnswerError {
    /// The action with this number, from 1, is wrong.
    pub(crate) fn in_action(number: usize, action: &impl Serialize, cause: &str) -> Self {
        let action = serde_json::to_string(action).unwrap_or_default();
        Self::Action(format!("action {number}: {cause}: {}", quote(&action)))
    }

    /// The cause of a fault: with the question, and with the answer unless one action is wrong.
    pub(crate) fn fault(&self, question: &str, answer: &str) -> String {
        let asked = quote(question);
        match self {
            Self::Action(cause) => format!("{cause}; asked: {asked}"),
            Self::Whole(cause) => format!("{cause}; asked: {asked}; answered: {}", quote(answer)),
        }
    }
}

/// The beginning of a line, with short pictures.
pub(crate) fn quote(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) if line.contains("\"svg\"") => {
            shorten_pictures(&mut value);
            cut(&value.to_string(), MAX_LINE)
        }
        _ => cut(line, MAX_LINE),
    }
}

/// Pictures would leave no room for the rest of a quoted line.
fn shorten_pictures(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(shorten_pictures),
        Value::Object(members) => {
            for (name, member) in members {
                if name == "svg" && member.is_string() {
                    *member = "<svg …>".into();
                } else {
                    shorten_pictures(member);
                }
            }
        }
        _ => {}
    }
}

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What is wrong with an answer; `None` if it has the right form.
fn explain(answer: &Value, seats: usize) -> Option<AnswerError> {
    let whole = |cause: String| Some(AnswerError::Whole(cause));
    let form = r#"the answer must be an object {"do":[…]}"#;
    let Value::Object(members) = answer else {
        return whole(format!("{form}, not {}", quote_value(answer)));
    };
    if let Some(other) = members.keys().find(|name| *name != "do") {
        return whole(format!("{form} without a member {other:?}"));
    }
    let Some(actions) = members.get("do") else { return whole(format!("{form}, not {{}}")) };
    let Value::Array(actions) = actions else {
        return whole(format!(r#""do" must be a list of actions, not {}"#, quote_value(actions)));
    };
    let mut numbered = iter::zip(1.., actions);
    numbered.find_map(|(number, action)| {
        explain_action(action, seats).map(|cause| AnswerError::in_action(number, action, &cause))
    })
}

fn explain_action(action: &Value, seats: usize) -> Option<String> {
    let Value::Object(members) = action else {
        return Some(format!(
            r#"an action is an object such as {{"tell":1,"text":"start"}}, not {}"#,
            quote_value(action)
        ));
    };
    let Some(known) = ACTIONS.into_iter().find(|known| members.contains_key(known[0].name)) else {
        return Some(unknown_action(members));
    };
    let name = known[0].name;
    let is_unknown = |key: &&String| known.iter().all(|member| member.name != key.as_str());
    if let Some(unknown) = members.keys().find(is_unknown) {
        let others = join(known.iter().map(|member| member.name));
        return Some(format!("{name:?} has no member {unknown:?}; its members are {others}"));
    }
    known.iter().find_map(|Member { name: member, kind, is_required }| {
        let described = kind.describe(seats);
        match members.get(*member) {
            None if *is_required => Some(format!("{name:?} needs {member:?}, {described}")),
            Some(value) if !kind.accepts(value) => {
                let of = if member == &name { String::new() } else { format!(" of {name:?}") };
                Some(format!("{member:?}{of} must be {described}, not {}", quote_value(value)))
            }
            _ => None,
        }
    })
}

/// The message for an action that names none. Its first member that belongs to no action is
/// probably a misspelt name.
fn unknown_action(members: &Map<String, Value>) -> String {
    let names = join(ACTIONS.iter().map(|members| members[0].name));
    let is_known = |key: &str| ACTIONS.into_iter().flatten().any(|member| member.name == key);
    match members.keys().find(|key| !is_known(key)) {
        Some(unknown) => format!("unknown action {unknown:?}; actions are {names}"),
        None => format!("it names no action; actions are {names}"),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A value as the rules wrote it.
fn quote_value(value: &Value) -> String {
    let mut value = value.clone();
    shorten_pictures(&mut value);
    cut(&value.to_string(), MAX_VALUE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The message for a wrong action in a match of two seats.
    fn wrong(action: &str) -> String {
        let answer = format!(r#"{{"do":[{{"note":"a"}},{{"note":"b"}},{action}]}}"#);
        let AnswerError::Action(message) = parse(&answer, 2).unwrap_err() else {
            panic!("{action} is one action")
        };
        let quoted = format!(": {}", quote(action));
        let cause = message.strip_prefix("action 3: ").and_then(|rest| rest.strip_suffix(&quoted));
        cause.unwrap_or_else(|| panic!("{message}")).to_owned()
    }

    #[test]
    fn messages_name_the_action_and_the_seats() {
        let seat = "a seat, a whole number from 1 to 2";
        let all = "actions are tell, ask, illegal, dismiss, note, frame, over, launch";
        for (action, message) in [
            (r#"{"tell":"1","text":"x"}"#, format!(r#""tell" must be {seat}, not "1""#)),
            (r#"{"tell":1.5,"text":"x"}"#, format!(r#""tell" must be {seat}, not 1.5"#)),
            (r#"{"ask":-1,"text":"x"}"#, format!(r#""ask" must be {seat}, not -1"#)),
            (r#"{"ask":300,"text":"x"}"#, format!(r#""ask" must be {seat}, not 300"#)),
            (r#"{"dismiss":null}"#, format!(r#""dismiss" must be {seat}, not null"#)),
            (r#"{"dismiss":[1]}"#, format!(r#""dismiss" must be {seat}, not [1]"#)),
            (
                r#"{"frame":{"svg":"<svg/>","caption":"c"},"for":"all"}"#,
                format!(r#""for" of "frame" must be {seat}, not "all""#),
            ),
            (r#"{"tel":1,"text":"x"}"#, format!(r#"unknown action "tel"; {all}"#)),
            (r#"{"text":"x","Ask":1}"#, format!(r#"unknown action "Ask"; {all}"#)),
            (r#"{"text":"x"}"#, format!("it names no action; {all}")),
            ("{}", format!("it names no action; {all}")),
        ] {
            assert_eq!(wrong(action), message, "{action}");
        }
    }

    #[test]
    fn messages_name_the_member_and_what_is_expected() {
        for (action, message) in [
            (r#"{"tell":1}"#, r#""tell" needs "text", a text"#),
            (r#"{"tell":1,"text":7}"#, r#""text" of "tell" must be a text, not 7"#),
            (r#"{"note":["x"]}"#, r#""note" must be a text, not ["x"]"#),
            (r#"{"illegal":1}"#, r#""illegal" needs "why", a text"#),
            (
                r#"{"tell":1,"text":"x","to":2}"#,
                r#""tell" has no member "to"; its members are tell, text, timed"#,
            ),
            (
                r#"{"tell":1,"ask":2,"text":"x"}"#,
                r#""tell" has no member "ask"; its members are tell, text, timed"#,
            ),
            (
                r#"{"dismiss":1,"why":"x"}"#,
                r#""dismiss" has no member "why"; its members are dismiss"#,
            ),
            (r#"{"ask":1,"text":"x","ack":1}"#, r#""ack" of "ask" must be true or false, not 1"#),
            (
                r#"{"ask":1,"text":"x","move_us":"5s"}"#,
                r#""move_us" of "ask" must be a whole number of microseconds, not "5s""#,
            ),
            (
                r#"{"frame":"<svg/>"}"#,
                r#""frame" must be a picture, {"svg":TEXT,"caption":TEXT}, not "<svg/>""#,
            ),
            (
                r#"{"frame":{"svg":"<svg/>"}}"#,
                r#""frame" must be a picture, {"svg":TEXT,"caption":TEXT}, not {"svg":"<svg …>"}"#,
            ),
            (
                r#"{"over":[1,0]}"#,
                r#""over" must be a list with a list of whole numbers for each seat, not [1,0]"#,
            ),
            (
                r#"{"over":[[1.5],[0]]}"#,
                r#""over" must be a list with a list of whole numbers for each seat, not [[1.5],[0]]"#,
            ),
            (
                r#"{"over":[[1],[0]],"forfeits":["slow",null]}"#,
                r#""forfeits" of "over" must be a list with null, "clock", "illegal", "gone" or "flood" for each seat, not ["slow",null]"#,
            ),
            (
                r#"{"over":[[1],[0]],"bad_answers":[-1,0]}"#,
                r#""bad_answers" of "over" must be a list with a number of bad replies for each seat, not [-1,0]"#,
            ),
            (
                r#"{"launch":1,"arguments":"x"}"#,
                r#""arguments" of "launch" must be a list of texts, not "x""#,
            ),
            ("5", r#"an action is an object such as {"tell":1,"text":"start"}, not 5"#),
            (
                r#""over""#,
                r#"an action is an object such as {"tell":1,"text":"start"}, not "over""#,
            ),
        ] {
            assert_eq!(wrong(action), message, "{action}");
        }
        let long = format!(r#"{{"tell":"{}","text":"x"}}"#, "1".repeat(5000));
        assert!(wrong(&long).len() < 200, "{}", wrong(&long));
    }

    #[test]
    fn messages_say_what_an_answer_is() {
        let form = r#"the answer must be an object {"do":[…]}"#;
        for (answer, message) in [
            ("5", format!("{form}, not 5")),
            ("[]", format!("{form}, not []")),
            ("{}", format!("{form}, not {{}}")),
            (r#"{"legal":[]}"#, format!(r#"{form} without a member "legal""#)),
            (r#"{"do":[],"more":1}"#, format!(r#"{form} without a member "more""#)),
            (
                r#"{"do":{"note":"x"}}"#,
                r#""do" must be a list of actions, not {"note":"x"}"#.to_owned(),
            ),
        ] {
            assert_eq!(parse(answer, 2).unwrap_err(), AnswerError::Whole(message));
        }
        let error = parse("hello", 2).unwrap_err().fault("{}", "hello");
        assert!(error.starts_with("expected value at line 1"), "{error}");
        assert!(error.ends_with("; asked: {}; answered: hello"), "{error}");
    }

    #[test]
    fn a_picture_does_not_hide_the_wrong_action() {
        let svg = "x".repeat(5000);
        let frame = format!(r#"{{"frame":{{"svg":"{svg}","caption":"c"}}}}"#);
        let answer = format!(r#"{{"do":[{frame},{{"ask":-1,"text":"bid 8"}}]}}"#);
        let error = parse(&answer, 3).unwrap_err().fault("{}", &answer);
        assert!(error.ends_with(r#"not -1: {"ask":-1,"text":"bid 8"}; asked: {}"#), "{error}");
        let short =
            r#"{"do":[{"frame":{"svg":"<svg …>","caption":"c"}},{"ask":-1,"text":"bid 8"}]}"#;
        assert_eq!(quote(&answer), short);
    }

    /// A valid value for a member.
    fn example(kind: Kind) -> Value {
        match kind {
            Kind::Seat => json!(1),
            Kind::Text => json!("x"),
            Kind::Flag => json!(true),
            Kind::Time => json!(5),
            Kind::Texts => json!(["x"]),
            Kind::Frame => json!({"svg": "<svg/>", "caption": "x"}),
            Kind::Scores => json!([[1], [0]]),
            Kind::Forfeits => json!([null, "clock"]),
            Kind::Counts => json!([0, 1]),
        }
    }

    #[test]
    fn the_described_actions_are_those_of_the_protocol() {
        for members in ACTIONS {
            let parses = |members: &mut dyn Iterator<Item = &Member>| {
                let action: Map<_, _> =
                    members.map(|member| (member.name.to_owned(), example(member.kind))).collect();
                parse(&json!({ "do": [action] }).to_string(), 2)
            };
            let name = members[0].name;
            assert!(parses(&mut members.iter()).is_ok(), "{name} with all members");
            for left_out in members {
                let others = &mut members.iter().filter(|member| member.name != left_out.name);
                let member = left_out.name;
                assert_eq!(
                    parses(others).is_ok(),
                    !left_out.is_required,
                    "{name} without {member}"
                );
            }
        }
    }
}
