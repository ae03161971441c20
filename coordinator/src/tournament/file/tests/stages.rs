//! The `[[stage]]` sections of a tournament file.

use arbiter_schedule::{Seeding, StageSchedule, SwissRules};

use super::*;

/// A tournament of three stages.
const CUP: &str = "[[stage]]\nkind = \"swiss\"\nrounds = 9\nadvance = 8\n\
    [[stage]]\nkind = \"round_robin\"\nlegs = 2\nadvance = 2\n\
    [[stage]]\nkind = \"knockout\"\nbest_of = 4\n";

#[test]
fn stages_are_read_and_stored() {
    let parsed = file("gomoku", CUP).unwrap();
    let Schedule::Stages(stages) = &parsed.schedule else { panic!("{:?}", parsed.schedule) };
    let stages = stages.list();
    assert_eq!(
        stages.iter().map(|stage| stage.advance).collect::<Vec<_>>(),
        [Some(8), Some(2), None]
    );
    let nine = Repetitions::try_from(9).unwrap();
    let swiss = SwissRules { rounds: Some(nine), ..SwissRules::default() };
    assert_eq!(stages[0].schedule, StageSchedule::Swiss(swiss));
    // Official values of the game are the defaults, and numbers follow from ranks.
    let two = Repetitions::TWICE;
    let double = RoundRobin { legs: two, ..rules(Sides::Both, 1) };
    assert_eq!(stages[1].schedule, StageSchedule::RoundRobin(double));
    let four = Repetitions::try_from(4).unwrap();
    let final_rules = Knockout { best_of: four, seeding: Seeding::Rank, ..Knockout::default() };
    assert_eq!(stages[2].schedule, StageSchedule::Knockout(final_rules));
    assert_eq!(parsed.state, StateScope::None);
    let json = parsed.to_json();
    assert_eq!(TournamentFile::from_json(&Games::built_in(), &json).unwrap(), parsed);
    let tables = "[[stage]]\nkind = \"foursomes\"\nadvance = 4\n\
        [[stage]]\nkind = \"tables\"\npoints = \"carried\"";
    assert!(file("wojna", tables).is_ok());
}

#[test]
fn errors_of_stages_name_the_stage_and_the_line() {
    let error = |lines: &str| file("gomoku", lines).unwrap_err().to_string();
    let check = |lines: &str, expected: &str| {
        let error = error(lines);
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        &CUP.replace("rounds = 9", "rounds = 0"),
        "line 5: [[stage]] number 1 rounds = 0: 0 is not",
    );
    check(
        &CUP.replace("legs = 2", "leg = 2"),
        "line 9: [[stage]] number 2 leg = 2: there is no such key",
    );
    check(
        &CUP.replace("knockout", "solo"),
        "line 12: [[stage]] number 3 kind = \"solo\": the kinds",
    );
    check(
        &CUP.replace("advance = 2", "advance = 9"),
        "line 10: [[stage]] number 2 advance = 9: only 8 bots play",
    );
    check(&CUP.replace("advance = 8\n", ""), "line 3: [[stage]] number 1: stage 1 needs `advance`");
    check(&format!("{CUP}points = \"carried\""), "line 14: [[stage]] number 3 points");
    check(&format!("{CUP}boards = \"official\""), "line 14: [[stage]] number 3 boards");
    check(&format!("{CUP}[schedule]\nlegs = 2"), "line 14: [schedule]: the [[stage]] sections are");
    check("[stage]\nkind = \"swiss\"", "line 3: stage: write [[stage]], once for each stage");
    check(
        "[[stage]]\nkind = \"swiss\"",
        "line 3: [[stage]] number 1: there must be 2 to 16 stages",
    );
    let error = file("gomoku", "[schedule]\nkind = \"knockout\"\nseeding = \"rank\"").unwrap_err();
    assert!(error.to_string().contains("there is no former stage"), "{error}");
    let error = file("gomoku", "[schedule]\nkind = \"gauntlet\"\npanel = []").unwrap_err();
    assert!(error.to_string().contains("panel = []: it is empty"), "{error}");
    let error = file("gomoku", "[schedule]\nkind = \"gauntlet\"\npanel = [\"a/b/c\"]").unwrap_err();
    assert!(error.to_string().contains("a/b: "), "{error}");
    let error = file("gomoku", "[schedule]\nkind = \"stages\"\nstages = []").unwrap_err();
    assert!(error.to_string().contains("stages"), "{error}");
    let error = file("gomoku", "[schedule]\nkind = \"knockout\"\nseeding = \"first\"").unwrap_err();
    assert!(error.to_string().contains("seeding can be draw or entry"), "{error}");
    let many = "[[stage]]\nkind = \"foursomes\"\nmeetings = 20000\nadvance = 4\n\
        [[stage]]\nkind = \"foursomes\"\n";
    let error = file("wojna", many).unwrap_err().to_string();
    assert!(error.starts_with("line 5: [[stage]] number 1 meetings = 20000"), "{error}");
    let seats = "[[stage]]\nkind = \"foursomes\"\nadvance = 4\n[[stage]]\nkind = \"tables\"";
    check(seats, "");
}
