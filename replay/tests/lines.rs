//! Lines of records: each has exactly one valid spelling, however it is parsed.

use arbiter_games::{Micros, Seat, TimeSpent};
use arbiter_replay::Line;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

proptest! {
    #[test]
    fn a_parsed_line_is_spelt_as_it_must_be(line in spellings()) {
        if let Some(parsed) = Line::parse(&line) {
            assert_eq!(parsed.to_json().unwrap(), line);
        }
    }

    #[test]
    fn messages_and_replies_are_parsed_with_any_text(
        time in any::<i64>(),
        wall in any::<i64>(),
        index in 0_usize..254,
        text in any::<String>(),
    ) {
        let time = Micros(time);
        let seat = Seat::from_index(index);
        let spent = TimeSpent { wall: Micros(wall), cpu: Micros(7) };
        let reply = text.as_bytes().into();
        let text = text.as_str().into();
        for line in [Line::Sent { time, seat, text }, Line::Replied { time, seat, reply, spent }] {
            let json = line.to_json().unwrap();
            assert_eq!(Line::parse(&json), Some(line));
        }
    }
}

/// Lines that are valid or nearly so.
fn spellings() -> impl Strategy<Value = String> {
    let start = prop_oneof![Just("{\"t\":"), Just("{ \"t\":"), Just("{\"t\":0"), Just("{\"t\":-")];
    let seat = prop_oneof![Just(",\"seat\":1"), Just(",\"seat\":0"), Just(",\"seat\":256")];
    let key = prop_oneof![Just(",\"send\":\""), Just(",\"reply\":\""), Just(",\"note\":\"")];
    let end = prop_oneof![
        Just("\"}"),
        Just("\",\"wall_us\":2,\"cpu_us\":3}"),
        Just("\",\"wall_us\":02,\"cpu_us\":3}"),
        Just("\",\"wall_us\":2,\"cpu_us\":3} "),
    ];
    let text = "[\u{0}-\u{ff}]{0,4}";
    (start, 0..200_i64, seat, key, text, end).prop_map(|(start, time, seat, key, text, end)| {
        format!("{start}{time}{seat}{key}{text}{end}")
    })
}
