use arbiter_games::Games;
use serde_json::json;
use time::Duration;
use time::macros::datetime;

use super::*;

const NOW: OffsetDateTime = datetime!(2027-03-01 12:00 UTC);

fn file(lines: &str) -> TournamentFile {
    file_of("gomoku", lines)
}

fn file_of(game: &str, lines: &str) -> TournamentFile {
    let text = format!("name = \"cup\"\ngame = \"{game}\"\n{lines}");
    TournamentFile::parse(&Games::built_in(), &text).unwrap()
}

/// Sets keys of a file. Returns the changes, or the error as text.
fn set(current: &TournamentFile, has_edition: bool, keys: &str) -> Result<Vec<KeyChange>, String> {
    let games = Games::built_in();
    let (set, unset) = match keys.strip_prefix('-') {
        None => (keys, Vec::new()),
        Some(key) => ("", vec![key.to_owned()]),
    };
    let edited = current.with_changes(&games, set, &unset).map_err(|error| error.to_string())?;
    let context = EditContext { has_edition, is_rehearsal: false, now: NOW };
    changes(current, &edited, context).map_err(|error| error.to_string())
}

fn time(hours: i64) -> Moment {
    Moment(NOW + Duration::hours(hours))
}

fn closes(hours: i64) -> String {
    format!("submissions.closes = \"{}\"", time(hours))
}

#[test]
fn changes_name_the_old_and_the_new_value_and_the_effect() {
    let current = file("title = \"Cup\"\n[limits]\nmemory = \"1GB\"");
    let changed = set(&current, false, "title = \"Spring\"\nlimits.memory = \"2GB\"").unwrap();
    let named: Vec<_> =
        changed.iter().map(|change| (&change.key[..], &change.before, &change.after)).collect();
    let expected =
        [("limits.memory", json!("1 GB"), json!("2 GB")), ("title", json!("Cup"), json!("Spring"))];
    let expected: Vec<_> = expected.iter().map(|(key, old, new)| (*key, old, new)).collect();
    assert_eq!(named, expected);
    assert!(changed[0].effect.contains("from edition 1 on"), "{}", changed[0].effect);
    assert_eq!(set(&current, true, "title = \"Cup\""), Ok(Vec::new()), "nothing changed");
    let removed = set(&current, true, "-title").unwrap();
    assert_eq!((&removed[0].before, &removed[0].after), (&json!("Cup"), &Value::Null));
    assert!(set(&current, true, "-titel").unwrap_err().contains("there is no such key"));
    assert!(set(&current, true, "titel = \"x\"").unwrap_err().contains("there is no such key"));
    let error = set(&current, false, "[clock]\nkind = \"sun\"").unwrap_err();
    assert!(
        error.starts_with("[clock] kind = \"sun\""),
        "like the parser, without a line: {error}"
    );
}

/// The parameter `clock` of wojna has the name of a section.
#[test]
fn keys_of_sections_change_in_every_game() {
    let lines = [
        ("clock.kind = \"cpu\"", "clock.kind"),
        ("clock.margin = \"30ms\"", "clock.margin"),
        ("[clock]\nmargin = \"30ms\"", "clock.margin"),
        ("margin = \"30ms\"", "clock.margin"),
        ("limits.cpus = 2", "limits.cpus"),
        ("submissions.per_hour = 7", "submissions.per_hour"),
        ("public.replays = \"never\"", "public.replays"),
        ("audit.replay = \"7%\"", "audit.replay"),
        ("house.ranked = false", "house.ranked"),
    ];
    for game in Games::built_in().iter() {
        let current = file_of(game.as_str(), "");
        for (set_lines, key) in lines {
            let keys: Result<Vec<_>, _> = set(&current, false, set_lines)
                .map(|changes| changes.into_iter().map(|change| change.key).collect());
            assert_eq!(keys, Ok(vec![key.to_owned()]), "{game}: {set_lines}");
        }
    }
    let text = "clock = \"20000/1000/3000/100\"";
    let changed = set(&file_of("wojna", ""), false, text).unwrap();
    assert_eq!(changed[0].key, "params.clock", "a text is the parameter");
}

#[test]
fn a_key_of_several_sections_needs_its_section() {
    let wojna = file_of("wojna", "");
    for (keys, expected) in [
        (
            "kind = \"cpu\"",
            "kind = \"cpu\": there is no such key; kind is a key of clock and schedule: write \
             clock.kind or schedule.kind",
        ),
        (
            "seats = 2",
            "seats = 2: there is no such key; seats is a key of params and schedule: write \
             params.seats or schedule.seats",
        ),
        (
            "-kind",
            "kind: there is no such key; kind is a key of clock and schedule: write clock.kind or \
             schedule.kind",
        ),
    ] {
        assert_eq!(set(&wojna, false, keys), Err(expected.to_owned()), "{keys}");
    }
}

#[test]
fn what_decides_matches_changes_only_before_the_first_edition() {
    let current = file("");
    let keys = [
        "limits.memory = \"1GB\"",
        "clock.kind = \"cpu\"",
        "params.move_limit = \"1s\"",
        "ponder = \"allow\"",
        "state = \"none\"",
    ];
    for key in keys {
        assert_eq!(set(&current, false, key).map(|changes| changes.len()), Ok(1), "{key}");
        let error = set(&current, true, key).unwrap_err();
        assert!(error.contains("because editions share matches"), "{error}");
    }
}

#[test]
fn the_game_the_plan_and_the_seed_never_change() {
    let closing = format!("beacon = \"block 9\"\n{}", closes(1));
    let current = file(&closing);
    for key in
        ["name = \"other\"", "schedule.legs = 2", "beacon = \"block 10\"", "house.bots = [\"a\"]"]
    {
        let error = set(&current, false, key).unwrap_err();
        assert!(error.contains("it cannot change in an existing tournament"), "{key}: {error}");
    }
}

/// The parameters of the game would be unknown in another one.
#[test]
fn another_game_is_refused_as_such() {
    for current in [file(""), file("params.move_limit = \"1s\"")] {
        for game in ["wojna", "chess"] {
            let expected = format!(
                "game = \"{game}\": it cannot change in an existing tournament: the matches \
                 follow from it; create another tournament"
            );
            let refused = set(&current, false, &format!("game = \"{game}\""));
            assert_eq!(refused, Err(expected));
        }
        assert_eq!(set(&current, false, "game = \"gomoku\""), Ok(Vec::new()));
    }
}

#[test]
fn entry_closes_later_but_not_in_the_past() {
    for current in [file(&closes(1)), file(&closes(-1)), file("")] {
        let changed = set(&current, true, &closes(2)).unwrap();
        let reopened = current.submissions.closes == Some(time(-1));
        assert_eq!(changed[0].effect.contains("opens again"), reopened, "{}", changed[0].effect);
        assert!(set(&current, true, &closes(-2)).unwrap_err().contains("this time is past"));
    }
    let removed = set(&file(&closes(-1)), true, "-submissions.closes").unwrap();
    assert!(removed[0].effect.contains("opens again"), "{}", removed[0].effect);
}

#[test]
fn no_edit_promises_entry_to_a_rehearsal() {
    let games = Games::built_in();
    let current = file(&closes(-1));
    let context = EditContext { has_edition: true, is_rehearsal: true, now: NOW };
    let effects = |lines: &str, unset: &[String]| -> Vec<String> {
        let edited = current.with_changes(&games, lines, unset).unwrap();
        let changed = changes(&current, &edited, context).unwrap();
        changed.into_iter().map(|change| change.effect).collect()
    };
    let no_effect = "has no effect, because no bot can enter or leave a rehearsal";
    assert_eq!(effects("", &["closes".to_owned()]), [no_effect]);
    let entry = "preflight = false\nper_hour = 1\nwindow = \"1s\"\nrerun = \"manual\"";
    assert_eq!(effects(&format!("{}\n{entry}", closes(2)), &[]), [no_effect; 5]);
    assert_ne!(effects("stand_down_percent = 5", &[]), [no_effect]);
}

/// Otherwise an organiser who knows the value of the beacon could enter bots.
#[test]
fn with_a_beacon_entry_never_closes_later_than_announced() {
    let current = file(&format!("beacon = \"block 9\"\n{}", closes(2)));
    assert!(set(&current, true, &closes(3)).unwrap_err().contains("beacon"));
    assert!(set(&current, true, "-submissions.closes").unwrap_err().contains("beacon"));
    assert_eq!(set(&current, true, &closes(1)).map(|changes| changes.len()), Ok(1));
    let closed = file(&format!("beacon = \"block 9\"\n{}", closes(-1)));
    for key in [
        &closes(3)[..],
        "submissions.stand_down_percent = 5",
        "limits.cpus = 2",
        "house.ranked = false",
    ] {
        let error = set(&closed, false, key).unwrap_err();
        assert!(error.contains("the value of the beacon may be known"), "{key}: {error}");
    }
    assert_eq!(set(&closed, false, "title = \"x\"").map(|changes| changes.len()), Ok(1));
}

#[test]
fn a_freeze_moves_to_a_later_time_or_ends() {
    let freeze = |hours| format!("submissions.freeze = \"{}\"", time(hours));
    let frozen = file(&freeze(-1));
    assert!(set(&frozen, true, &freeze(-2)).unwrap_err().contains("this time is past"));
    for key in [&freeze(1)[..], "-submissions.freeze"] {
        let changed = set(&frozen, true, key).unwrap();
        assert!(changed[0].effect.contains("again at once"), "{}", changed[0].effect);
    }
}

#[test]
fn another_text_of_the_file_is_compared_as_a_whole() {
    let games = Games::built_in();
    let current = file("title = \"Cup\"\n[limits]\nmemory = \"1GB\"");
    let context = EditContext { has_edition: true, is_rehearsal: false, now: NOW };
    let text = "name = \"cup\"\ngame = \"gomoku\"\n[limits]\nmemory = \"1GB\"\n";
    let edited = TournamentFile::rewritten(&games, text).unwrap();
    let changed = changes(&current, &edited, context).unwrap();
    assert_eq!(changed.iter().map(|change| &change.key[..]).collect::<Vec<_>>(), ["title"]);
    let edited = TournamentFile::rewritten(&games, &text.replace("1GB", "2GB")).unwrap();
    let error = changes(&current, &edited, context).unwrap_err().to_string();
    assert!(error.starts_with("line 4: [limits] memory = \"2GB\": it cannot change"), "{error}");
}
