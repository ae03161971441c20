use super::*;

const CONNECT4: &str = r#"name = "connect4"
title = "Connect Four"
version = "1"
seats = [2, 2]
rules = { run = ["python3", "rules.py"] }
[clock]
move = "500ms"
[params.columns]
type = "integer"
default = 7
min = 4
max = 20
help = "columns of the board"
"#;

/// The line and the cause of the error of a descriptor.
fn error_of(text: &str) -> String {
    let DescriptorError { line, cause } = Descriptor::parse(text).unwrap_err();
    format!("line {line}: {cause}")
}

fn error(from: &str, to: &str) -> String {
    assert!(CONNECT4.contains(from), "{from}");
    error_of(&CONNECT4.replace(from, to))
}

#[test]
fn the_example_is_valid() {
    let descriptor = Descriptor::parse(CONNECT4).unwrap();
    assert_eq!((descriptor.name.as_str(), descriptor.seats), ("connect4", 2..=2));
    assert_eq!(descriptor.columns, ["points"]);
    assert_eq!(descriptor.clock.allowance, Allowance::Move(DEFAULT_LIMIT));
    assert_eq!(descriptor.params[0].default, Some(Value::from(7_i64)));
    assert_eq!(descriptor.carrier.program(), "python3");
    assert_eq!(descriptor.schedule, PackageSchedule::RoundRobin);
}

#[test]
fn every_key_is_read() {
    let text = CONNECT4
        .replace("[\"python3\", \"rules.py\"]", "[\"./rules\"], build = [\"make\"]")
        .replace("seats = [2, 2]", "seats = [3, 5]\nframes = true\nmatch_time = \"3s\"")
        + "[trial]\ncolumns = 4\n[bot]\nframing = { ends_with = [\"bestmove\"] }\n";
    let descriptor = Descriptor::parse(&text).unwrap();
    assert_eq!(descriptor.build, Some(vec!["make".to_owned()]));
    assert_eq!(descriptor.schedule, PackageSchedule::Tables);
    assert_eq!(descriptor.trial, [("columns".into(), Value::from(4_i64))]);
    assert_eq!(descriptor.framing, Framing::EndsWith(["bestmove".into()].into()));
    assert_eq!(descriptor.params.last().unwrap().key, "frames");
    let exec = CONNECT4.to_owned() + "[bot]\nprotocol = \"exec\"\narguments = true\n";
    let exec = Descriptor::parse(&exec).unwrap();
    assert_eq!((exec.protocol, exec.has_arguments), (Protocol::Exec, true));
    let gtp = CONNECT4.to_owned() + "[bot]\nframing = \"gtp\"\n";
    assert_eq!(Descriptor::parse(&gtp).unwrap().framing, Framing::Gtp);
    let wasm = CONNECT4.replace("run = [\"python3\", \"rules.py\"]", "wasm = \"rules.wasm\"");
    let carrier = Descriptor::parse(&wasm).unwrap().carrier;
    assert_eq!(carrier, Carrier::Wasm("rules.wasm".to_owned()));
}

const EPISODES: &str = r#"
[episodes]
rounds = "rounds"
score = "chips"
least = 10
column = "broke"
[params.rounds]
type = "integer"
default = 5
min = 1
max = 100
help = "rounds of an episode"
[params.chips]
type = "per_seat"
default = 200
min = 0
help = "chips at the beginning"
"#;

#[test]
fn episodes_need_parameters_that_are_carried() {
    let text = CONNECT4.replace("seats = [2, 2]", "seats = [1, 4]") + EPISODES;
    let descriptor = Descriptor::parse(&text).unwrap();
    assert_eq!(descriptor.schedule, PackageSchedule::Episodes);
    assert_eq!(descriptor.episodes.unwrap().column, "broke");
    for (from, to, expected) in [
        ("[1, 4]", "[2, 4]", "line 15: episodes: several bots share a table, and the last table"),
        ("[1, 4]", "[1, 1]", "line 15: episodes: several bots share a table"),
        (
            "default = 200",
            "default = 5",
            "default of params.chips must be one number for all bots, 10",
        ),
        ("default = 200", "default = [200, 100]", "must be one number for all bots"),
        ("\"broke\"", "\"points\"", "episodes.column: write 1 to 32 characters that no other"),
        ("\"broke\"", "\"\"", "episodes.column: write 1 to 32 characters"),
        ("column = \"broke\"", "column = \"broke\"\nbad_answers = \"chips\"", "name a different"),
        ("score = \"chips\"", "score = [\"chips\"]", "line 17: invalid type: sequence"),
        ("score = \"chips\"", "score = \"coins\"", "there is no parameter `coins`"),
        ("min = 1\n", "", "episodes.rounds: params.rounds needs type = \"integer\""),
        ("min = 0", "min = 0\nmax = 999", "params.chips needs type = \"per_seat\", min = 10"),
        ("[1, 4]", "[1, 4]\nschedule = \"solo\"", "line 5: schedule: a game with [episodes]"),
        ("least = 10", "", "missing field `least`"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = error_of(&text.replace(from, to));
        assert!(error.contains(expected), "{to}: {error}");
    }
    let solo = CONNECT4.replace("[2, 2]", "[1, 2]\nschedule = \"episodes\"");
    let error = error_of(&solo);
    assert!(error.contains("\"episodes\" needs the section [episodes]"), "{error}");
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    for (from, to, expected) in [
        ("seats = [2, 2]", "seats = [3, 2]", "line 4: seats: write the least and the most"),
        ("seats = [2, 2]", "seats = [0, 2]", "from 1 to 16"),
        ("run = [\"python3\", \"rules.py\"]", "wasm = \"\"", "line 5: rules: write either run"),
        ("seats = [2, 2]", "seats = [2, 2]\nschedule = \"cup\"", "line 5: schedule: write"),
        ("[clock]", "[bot]\nframing = \"word\"\n[clock]", "line 7: bot.framing: write"),
        ("[clock]", "[bot]\nframing = { ends_with = [\"a b\"] }\n[clock]", "line 7: bot.framing"),
        ("[clock]", "[bot]\nprotocol = \"http\"\n[clock]", "line 7: bot.protocol: write"),
        ("[clock]", "[trial]\nrows = 3\n[clock]", "line 7: trial: there is no parameter `rows`"),
        ("[clock]", "[trial]\ncolumns = 3\n[clock]", "line 7: trial: columns cannot be 3"),
        ("[params.columns]", "[params.frames]", "choose another name"),
        ("seats = [2, 2]", "chairs = [2, 2]", "line 4: unknown field `chairs`"),
        ("version = \"1\"\n", "", "version is missing: add a line such as version = \"1\""),
        ("type = \"integer\"\n", "", "line 8: params.columns: type is missing: add a line"),
        ("seats = [2, 2]", "seats = [2", "line 5: missing comma between array elements"),
        ("\"connect4\"", "\"Connect 4\"", "line 1: name: write 1 to 32 lowercase letters"),
        ("{ run = [\"python3\", \"rules.py\"] }", "\"rules.py\"", "line 5: rules: write { run"),
        ("[2, 2]", "3", "line 4: seats: write the least and the most at a table, as in [2, 4]"),
        ("[2, 2]", "[2, 2]\nscore = \"value\"", "line 5: score: write a list"),
        ("\"1\"", "1", "line 3: version: write it in quotes, as in \"1\""),
        ("\"integer\"", "\"int\"", "line 9: type: write integer, number, boolean, text"),
        ("\"integer\"", "\"choice\"", "params.columns: add `choices = [\"a\", \"b\"]`, which"),
        ("min = 4", "choices = [\"a\"]", "only type \"choice\" has `choices`"),
        ("[2, 2]", "[3, 5]\nschedule = \"round_robin\"", "line 5: schedule: \"round_robin\" needs"),
        ("run = [\"python3\", \"rules.py\"]", "run = []", "line 5: rules.run: write a program"),
        ("move = \"500ms\"", "", "line 6: clock: write either move"),
        ("move = \"500ms\"", "move = \"soon\"", "line 7: `soon` is not a duration"),
        ("default = 7", "default = 3", "line 8: params.columns: the default: columns cannot be 3"),
        ("max = 20", "most = 20", "line 12: unknown field `most`"),
        ("min = 4", "min = 4.5", "4.5 is not a whole number"),
        ("\"integer\"", "\"text\"", "only numbers have `min` and `max`"),
    ] {
        let error = error(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
}

/// Pages begin an error with a capital letter, which the name of a file must not get.
#[test]
fn an_error_begins_with_the_line() {
    let error = Descriptor::parse("name = 5").unwrap_err().to_string();
    assert!(error.starts_with("line 1 of game.toml: "), "{error}");
}
