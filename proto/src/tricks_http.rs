//! Tricks over HTTP: the bodies of requests and responses.
//!
//! Clients of the original server use various formats and often wrong headers. So the body alone
//! determines its format, not the headers: a JSON object, `multipart/form-data`, a url-encoded
//! form, or lines `name: value`. Responses are lines, or JSON if the request was JSON. Both the
//! server of the house player and the referee's seat for clients use this module.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

/// The path of the server.
pub const PATH: &str = "/tricks.php";

/// The error message for an HTTP bot in another game.
pub const HTTP_ONLY_FOR_TRICKS: &str = "only tricks is played over http";
/// The maximum size of a request body in bytes: many times the size of 200 cards.
pub const MAX_BODY: usize = 64 * 1024;

/// The known fields.
const TOKEN: &str = "token";
const GAMES: &str = "_games";
const MOVE: &str = "move";

/// The format of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines `name: value`.
    #[default]
    Lines,
    /// A JSON object.
    Json,
}

/// The fields of a request, not yet validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The player's token.
    pub token: Option<String>,
    /// The number of tables to play.
    pub games: Option<String>,
    /// The cards to play.
    pub cards: Option<String>,
}

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// It is not UTF-8.
    #[error("the request is not UTF-8")]
    Encoding,
    /// It has no known format.
    #[error("the request has no fields; send token=… as a form, in lines, or as JSON")]
    NoFields,
    /// It starts like one of the formats, but is malformed.
    #[error("the request's {0} is malformed or incomplete")]
    Malformed(&'static str),
    /// A field occurs more than once.
    #[error("{0} is given twice")]
    Repeated(&'static str),
}

impl Format {
    /// The format for the response to this body.
    pub fn of(body: &[u8]) -> Self {
        if body.trim_ascii_start().starts_with(b"{") { Self::Json } else { Self::Lines }
    }

    /// The media type of responses.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Lines => "text/plain; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    /// A response from its lines, each of them `name: value`.
    pub fn response(self, lines: &str) -> String {
        match self {
            Self::Lines => format!("{lines}\n"),
            Self::Json => {
                let fields = lines.lines().filter_map(|line| line.split_once(": "));
                let value = |text: &str| text.parse().map_or_else(|_| text.into(), number);
                let object: Map<_, _> =
                    fields.map(|(name, text)| (name.to_owned(), value(text))).collect();
                format!("{}\n", Value::Object(object))
            }
        }
    }
}

fn number(number: i64) -> Value {
    number.into()
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// If the body has no known fields, is malformed, or repeats a field.
    pub fn read(body: &[u8]) -> Result<Self, BodyError> {
        let text = str::from_utf8(body)
            .map_err(|_| BodyError::Encoding)?
            .trim_start_matches('\u{feff}')
            .trim_ascii_start();
        if text.starts_with('{') {
            return Self::of(json(text)?);
        }
        if text.starts_with("--") {
            return Self::of(multipart(text)?);
        }
        match text.find(['=', ':']).map(|index| text.as_bytes()[index]) {
            Some(b'=') => Self::of(form(text)?),
            Some(_) => Self::of(lines(text)),
            None => Err(BodyError::NoFields),
        }
    }

    /// Reads the known fields and ignores the others.
    fn of(fields: Vec<(String, String)>) -> Result<Self, BodyError> {
        let mut request = Self::default();
        for (name, value) in fields {
            let (field, name) = match name.as_str() {
                TOKEN => (&mut request.token, TOKEN),
                GAMES => (&mut request.games, GAMES),
                MOVE => (&mut request.cards, MOVE),
                _ => continue,
            };
            if field.replace(value.trim_ascii().to_owned()).is_some() {
                return Err(BodyError::Repeated(name));
            }
        }
        Ok(request)
    }
}

/// The fields of a url-encoded form.
fn form(text: &str) -> Result<Vec<(String, String)>, BodyError> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode(name)?, decode(value)?))
    });
    decoded.collect()
}

/// Decodes url-encoding. A percent sign without two digits stands for itself.
fn decode(text: &str) -> Result<String, BodyError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        let digits = tail.first_chunk().and_then(|[high, low]| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
        });
        match (byte, digits) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| BodyError::Encoding)
}

/// The fields of lines `name: value`.
fn lines(text: &str) -> Vec<(String, String)> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim_ascii().to_owned(), value.to_owned())).collect()
}

/// The fields of `multipart/form-data`. The first line is the boundary.
fn multipart(text: &str) -> Result<Vec<(String, String)>, BodyError> {
    let malformed = || BodyError::Malformed("multipart form");
    let boundary = text.lines().next().unwrap_or_default().trim_ascii_end();
    let mut parts: Vec<_> = text.split(boundary).skip(1).collect();
    if !parts.pop().is_some_and(|end| end.starts_with("--")) {
        return Err(malformed());
    }
    let field = |part: &str| {
        let blank = ["\r\n\r\n", "\n\n"].into_iter().filter_map(|blank| part.split_once(blank));
        let (head, value) = blank.min_by_key(|(head, _)| head.len()).ok_or_else(malformed)?;
        Ok((name(head).ok_or_else(malformed)?, value.to_owned()))
    };
    parts.into_iter().map(field).collect()
}

/// The name of a part, from its headers.
fn name(head: &str) -> Option<String> {
    let is_named = |line: &&str| {
        let (header, _) = line.split_once(':').unwrap_or_default();
        header.trim_ascii().eq_ignore_ascii_case("content-disposition")
    };
    let disposition = head.lines().find(is_named)?;
    let mut parameters = disposition.split(';').map(str::trim_ascii);
    let name = parameters.find_map(|parameter| parameter.strip_prefix("name="))?;
    Some(name.trim_matches('"').to_owned())
}

/// The fields of an object.
fn json(text: &str) -> Result<Vec<(String, String)>, BodyError> {
    let fields: Fields = serde_json::from_str(text).map_err(|_| BodyError::Malformed("JSON"))?;
    Ok(fields.0)
}

/// All fields of an object, including duplicates.
struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    fields.push((name, form_text(&value)));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A value as text, as in a form. The elements of an array are joined by spaces.
fn form_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(form_text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: &str, games: Option<&str>, cards: Option<&str>) -> Request {
        let games = games.map(str::to_owned);
        let cards = cards.map(str::to_owned);
        Request { token: Some(token.to_owned()), games, cards }
    }

    #[test]
    fn every_body_format_is_parsed_alike() {
        let expected = request("abc", None, Some("W6 Z5"));
        for body in [
            "token=abc&move=W6 Z5",
            "token=abc&move=W6+Z5",
            "token=abc&move=W6%20Z5&",
            "move=W6%20Z5&token=%61bc&other",
            "token=abc&move=W6 Z5\n",
            "token: abc\nmove: W6 Z5",
            "token: abc\r\nmove: W6 Z5\r\n",
            "token:abc\nmove:W6 Z5\n\n",
            r#"{"token":"abc","move":"W6 Z5"}"#,
            r#" {"move":["W6","Z5"],"token":"abc","x":{"token":1}}"#,
            "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc\r\n--b\r\n\
             content-disposition: form-data; name=move\r\nContent-Type: text/plain\r\n\r\n\
             W6 Z5\r\n--b--\r\n",
        ] {
            assert_eq!(Request::read(body.as_bytes()).as_ref(), Ok(&expected), "{body}");
        }
        let expected = request("abc", Some("2"), None);
        for body in ["token=abc&_games=2", "token: abc\n_games: 2", r#"{"token":"abc","_games":2}"#]
        {
            assert_eq!(Request::read(body.as_bytes()).as_ref(), Ok(&expected), "{body}");
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for (body, error) in [
            (&b""[..], BodyError::NoFields),
            (b"token", BodyError::NoFields),
            (b"token=\xff", BodyError::Encoding),
            (b"token=%ff", BodyError::Encoding),
            (b"token=a&token=a", BodyError::Repeated("token")),
            (b"token: a\nmove: b\nmove: c", BodyError::Repeated("move")),
            (br#"{"_games":1,"_games":2}"#, BodyError::Repeated("_games")),
            (b"{\"token\":", BodyError::Malformed("JSON")),
            (b"--b\r\nname=", BodyError::Malformed("multipart form")),
            (b"--", BodyError::Malformed("multipart form")),
            (b"--b\r\n\r\n\r\n--b--", BodyError::Malformed("multipart form")),
        ] {
            let result = Request::read(body);
            assert_eq!(result, Err(error), "{}", String::from_utf8_lossy(body));
        }
        assert_eq!(Request::read(b"a=b"), Ok(Request::default()));
    }

    #[test]
    fn responses_use_the_same_field_names() {
        let lines = "states: +. .\nscores: 0:1 2:0\nresult: -2";
        assert_eq!(Format::Lines.response(lines), format!("{lines}\n"));
        let json = "{\"states\":\"+. .\",\"scores\":\"0:1 2:0\",\"result\":-2}\n";
        assert_eq!(Format::Json.response(lines), json);
        assert_eq!((Format::of(b"\n{}"), Format::of(b"a=b")), (Format::Json, Format::Lines));
    }
}
