//! Numbers and dice in words.

use crate::call::Bid;

/// The names of the faces.
const FACES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// A bid: `1 six`, `4 sixes`.
pub fn bid(Bid { count, face }: Bid) -> String {
    let name = FACES[usize::from(face) - 1];
    match count {
        1 => format!("1 {name}"),
        _ if name == "six" => format!("{count} sixes"),
        _ => format!("{count} {name}s"),
    }
}

/// How many dice count for a bid: `there are 4`.
pub fn there_are(count: usize) -> String {
    match count {
        0 => "there are none".to_owned(),
        1 => "there is 1".to_owned(),
        _ => format!("there are {count}"),
    }
}

/// A place: `1st`, `2nd`.
pub fn place(place: usize) -> String {
    let ending = match place {
        1 => "st",
        2 => "nd",
        3 => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
}
