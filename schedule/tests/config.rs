//! The `[schedule]` of a tournament file.

use arbiter_games::Seed;
use arbiter_schedule::{
    Episodes, FoursomesConfig, Plan, RoundRobin, Schedule, ScheduleError, Sides, Solo, TableSeats,
    Tables,
};

fn read(text: &str) -> Result<Schedule, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn every_kind_round_trips() {
    let texts = [
        "kind = \"round_robin\"\nlegs = 2\nsides = \"both\"\nboards = 8\n",
        "kind = \"round_robin\"\nlegs = 1\nsides = \"balanced\"\nboards = 1\nopponents = 64\n",
        "kind = \"foursomes\"\n",
        "kind = \"foursomes\"\nmeetings = 6\n",
        "kind = \"foursomes\"\ngames = 1000\n",
        "kind = \"tables\"\nseats = 5\nlegs = 3\n",
        "kind = \"solo\"\nlegs = 3\n",
        "kind = \"episodes\"\nepisodes = 25\n",
    ];
    for text in texts {
        let schedule = read(text).unwrap();
        assert_eq!(toml::to_string(&schedule).unwrap(), text);
    }
    assert_eq!(read("kind = \"foursomes\""), Ok(Schedule::Foursomes(FoursomesConfig::Least)));
    let tables = Tables::of(TableSeats::try_from(5).unwrap());
    assert_eq!(read("kind = \"tables\"\nseats = 5"), Ok(Schedule::Tables(tables)));
    assert_eq!(read("kind = \"solo\""), Ok(Schedule::Solo(Solo::default())));
    assert_eq!(read("kind = \"episodes\""), Ok(Schedule::Episodes(Episodes::default())));
    let rules = RoundRobin { sides: Sides::Balanced, ..RoundRobin::default() };
    assert_eq!(read("kind = \"round_robin\""), Ok(Schedule::RoundRobin(rules)));
}

#[test]
fn invalid_options_are_errors() {
    let check = |text: &str, phrases: &[&str]| {
        let error = read(text).unwrap_err();
        assert!(phrases.iter().all(|phrase| error.contains(phrase)), "{text}: {error}");
    };
    check("legs = 1", &["kind"]);
    check("kind = \"league\"", &["league", "round_robin", "foursomes", "episodes"]);
    check("kind = \"round_robin\"\nlegs = 0", &["0 is not possible", "1 to 1000"]);
    check("kind = \"round_robin\"\nboards = 1001", &["1001", "1 to 1000"]);
    check("kind = \"round_robin\"\nopponents = 0", &["0 is not possible", "1 to 65535"]);
    check("kind = \"round_robin\"\nopponents = 65536", &["65536", "leave it out for all pairs"]);
    check("kind = \"round_robin\"\nsides = \"left\"", &["both, random or balanced"]);
    check("kind = \"round_robin\"\nmeetings = 2", &["meetings", "legs"]);
    check("kind = \"foursomes\"\nlegs = 2", &["legs", "meetings", "games"]);
    check("kind = \"foursomes\"\nmeetings = 0", &["meetings = 0", "1 or more"]);
    check("kind = \"foursomes\"\ngames = -5", &["games = -5", "1 or more"]);
    let both = "kind = \"foursomes\"\nmeetings = 3\ngames = 100";
    check(both, &["meetings = 3", "games = 100", "one of them"]);
    check("kind = \"tables\"", &["seats"]);
    check("kind = \"tables\"\nseats = 17", &["a table cannot have 17 seats", "2 to 16"]);
    check("kind = \"tables\"\nseats = 5\nlegs = 0", &["0 is not possible", "1 to 1000"]);
    check("kind = \"solo\"\nseats = 1", &["seats", "legs"]);
    check("kind = \"episodes\"\nepisodes = 0", &["0 is not possible"]);
    let error = FoursomesConfig::new(Some(10_001), None).unwrap_err().to_string();
    assert_eq!(error, "meetings = 10001 is not possible; write at most 10000");
    // A stored schedule of a former release is read.
    assert!(read("kind = \"foursomes\"\nmeetings = 10001").is_ok());
}

#[test]
fn episodes_are_described() {
    let plan = Schedule::Episodes(Episodes::default()).plan(10, Seed::of_text("")).unwrap();
    let Plan::Episodes(plan) = plan else { panic!("expected episodes") };
    assert_eq!((plan.episodes, plan.tables(), plan.max_matches(5)), (25, 3, 375));
    let keys: Vec<_> = plan.keys().collect();
    assert_eq!((keys.len(), keys[0].as_str(), keys[24].as_str()), (25, "episode 1", "episode 25"));
    assert!(Episodes::default().plan(0).is_err());
}

#[test]
fn the_minimum_is_the_smallest_number_of_bots_with_a_plan() {
    for (text, least) in [
        ("kind = \"round_robin\"", 2),
        ("kind = \"foursomes\"", 4),
        ("kind = \"tables\"\nseats = 5", 5),
        ("kind = \"solo\"", 1),
        ("kind = \"episodes\"", 1),
    ] {
        let schedule = read(text).unwrap();
        assert_eq!(schedule.min_bots(), least, "{text}");
        let seed = Seed::of_text("");
        assert!(schedule.plan(least, seed).is_ok(), "{text}");
        let too_few = schedule.plan(least - 1, seed);
        assert!(matches!(too_few, Err(ScheduleError::TooFew { .. })), "{text}");
    }
}
