//! How balanced a schedule is, in sentences: the certificate of an edition.

use std::ops::RangeInclusive;

use arbiter_proto::v1;
use arbiter_schedule::{Certificate, SameOwnerPairs};
use maud::{Markup, html};

use super::layout::{count, label};
use crate::service::counted_certificate;
use crate::tournament::beacon::seed_origin;

/// The section about the balance of a schedule.
pub(super) fn section(certificate: &v1::Certificate) -> Markup {
    let v1::Certificate { plan, not_counted, broken_promise, .. } = certificate;
    html! {
        section.certificate aria-labelledby="certificate" {
            h2 #certificate { "Balance of the schedule" }
            @if !not_counted.is_empty() {
                p { strong { "Balance not certified" } ": " (not_counted) "." }
            } @else {
                @if !plan.is_empty() { p { "Plan: " (plan) "." } }
                p { "Counted from the matches themselves:" }
                ul { @for sentence in sentences(&counted_certificate(certificate)) { li { (sentence) } } }
                @if broken_promise.is_empty() {
                    p { strong { "Verified" } ": the schedule is as balanced as promised." }
                } @else {
                    p.error-message { "The schedule is not as balanced as promised: " (broken_promise) }
                }
            }
            (seed(certificate.beacon.as_ref(), certificate.edition))
        }
    }
}

/// A paragraph about the origin of an edition's seed.
pub(super) fn seed(beacon: Option<&v1::Beacon>, edition: i32) -> Markup {
    html! { p { (label(&seed_origin(beacon, edition))) "." } }
}

/// The counts of a certificate, a sentence for each.
fn sentences(counted: &Certificate) -> Vec<String> {
    let Certificate { bots, seats, matches, matches_of_bot, times_in_seat, .. } = counted;
    let bots_text = count(u64::try_from(*bots).unwrap_or(u64::MAX), "bot", "bots");
    let matches_text = count(*matches, "match", "matches");
    let each = match seats {
        1 => "one bot in each".to_owned(),
        seats => format!("{seats} bots in each"),
    };
    let mut all =
        vec![format!("There {} {bots_text} and {matches_text}, {each}.", verb(*bots == 1))];
    if *seats > 1 {
        all.push(meetings(counted));
    }
    if let Some(same_owner) = counted.same_owner.filter(|same_owner| same_owner.pairs > 0) {
        all.push(meetings_of_owners(same_owner));
    }
    let plural = if matches_of_bot.end() == &1 { "match" } else { "matches" };
    all.push(format!("Every bot plays {} {plural}.", range(matches_of_bot)));
    if *seats == 1 {
        return all;
    }
    let seat_times = times(&widened(times_in_seat));
    all.push(match counted.seat_spread {
        0 => format!("Every bot has each seat {seat_times}."),
        spread => {
            format!("Every bot has each seat {seat_times}. For one bot, the numbers differ by at most {spread}.")
        }
    });
    if let Some(spread) = counted.side_spread {
        all.push(match spread {
            0 => "When two bots meet, each has seat 1 equally often.".to_owned(),
            spread => format!(
                "When two bots meet, the numbers of times that each has seat 1 differ by at most {spread}."
            ),
        });
    }
    all
}

/// The verb before a number of things.
fn verb(is_one: bool) -> &'static str {
    if is_one { "is" } else { "are" }
}

/// How often bots of the same owner meet.
fn meetings_of_owners(SameOwnerPairs { pairs, meetings }: SameOwnerPairs) -> String {
    let pairs_text = count(pairs, "pair", "pairs");
    let meet = match (meetings, pairs) {
        (0, _) => "They never meet".to_owned(),
        (number, 1) => format!("They meet {}", times(&(number..=number))),
        (number, _) => format!("Together they meet {}", times(&(number..=number))),
    };
    format!("There {} {pairs_text} of bots of the same owner. {meet}.", verb(pairs == 1))
}

/// How often pairs of bots meet.
fn meetings(counted: &Certificate) -> String {
    if let Some(number) = counted.exact_meetings() {
        let matches = count(number, "match", "matches");
        return format!("Every pair of bots meets in exactly {matches}.");
    }
    let pairs = counted.meetings.iter().map(|(number, pairs)| {
        let pairs_text = count(*pairs, "pair", "pairs");
        let verb = if *pairs == 1 { "meets" } else { "meet" };
        match number {
            0 => format!("{pairs_text} never {verb}"),
            number => format!("{pairs_text} {verb} {}", times(&widened(&(*number..=*number)))),
        }
    });
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    match (counted.exact_opponents(), counted.uneven_pairs()) {
        (Some(number), _) => {
            let others = count(number, "other", "others");
            format!("Every bot meets exactly {others}: {pairs}.")
        }
        (None, 0) => format!("Bots meet as evenly as possible: {pairs}."),
        (None, uneven) => {
            let they_meet = if uneven == 1 { "meets" } else { "meet" };
            let uneven_text = count(uneven, "pair", "pairs");
            let even = counted.even_meetings().map(|even| one_or_other(&even)).unwrap_or_default();
            format!(
                "Bots do not meet equally often: {pairs}. {uneven_text} {they_meet} more or less often \
                 than in the most even plan ({even})."
            )
        }
    }
}

/// One of two numbers of times: `never or once`, `1 or 2 times`, `2 times`.
fn one_or_other(numbers: &RangeInclusive<u64>) -> String {
    match (*numbers.start(), *numbers.end()) {
        (0, 1) => "never or once".to_owned(),
        (least, most) if least == most => times(numbers),
        (least, most) => format!("{least} or {most} times"),
    }
}

fn widened(numbers: &RangeInclusive<u32>) -> RangeInclusive<u64> {
    u64::from(*numbers.start())..=u64::from(*numbers.end())
}

/// `once`, `2 times`, `2 to 3 times`.
fn times(numbers: &RangeInclusive<u64>) -> String {
    match (*numbers.start(), *numbers.end()) {
        (1, 1) => "once".to_owned(),
        _ => format!("{} times", range(numbers)),
    }
}

/// A range as text: one number if its ends are equal.
fn range<N: PartialEq + std::fmt::Display>(numbers: &RangeInclusive<N>) -> String {
    let least = numbers.start();
    let most = numbers.end();
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(meetings: &[(u32, u64)]) -> Certificate {
        Certificate {
            bots: 5,
            seats: 2,
            matches: 10,
            meetings: meetings.to_vec(),
            same_owner: None,
            opponents_of_bot: Some(4..=4),
            matches_of_bot: 4..=4,
            times_in_seat: 2..=3,
            seat_spread: 1,
            side_spread: Some(0),
        }
    }

    #[test]
    fn a_certificate_is_read_without_signs() {
        let expected = [
            "There are 5 bots and 10 matches, 2 bots in each.",
            "Every pair of bots meets in exactly 1 match.",
            "Every bot plays 4 matches.",
            "Every bot has each seat 2 to 3 times. For one bot, the numbers differ by at most 1.",
            "When two bots meet, each has seat 1 equally often.",
        ];
        assert_eq!(sentences(&counted(&[(1, 10)])), expected);
        let twice = meetings(&counted(&[(2, 10)]));
        assert_eq!(twice, "Every pair of bots meets in exactly 2 matches.");
        let even = meetings(&counted(&[(1, 9), (2, 1)]));
        assert_eq!(
            even,
            "Bots meet as evenly as possible: 9 pairs meet once, 1 pair meets 2 times."
        );
        let some = Certificate { opponents_of_bot: Some(2..=2), ..counted(&[(0, 5), (1, 5)]) };
        assert_eq!(
            meetings(&some),
            "Every bot meets exactly 2 others: 5 pairs never meet, 5 pairs meet once."
        );
        let uneven =
            meetings(&Certificate { opponents_of_bot: None, ..counted(&[(1, 8), (4, 2)]) });
        let two = "2 pairs meet more or less often than in the most even plan (1 or 2 times).";
        assert!(uneven.ends_with(two), "{uneven}");
        let whole = meetings(&Certificate { opponents_of_bot: None, ..counted(&[(1, 1), (3, 1)]) });
        assert!(whole.ends_with("than in the most even plan (2 times)."), "{whole}");
        let rare = Certificate { opponents_of_bot: None, ..counted(&[(0, 9), (2, 1)]) };
        let sentence = meetings(&rare);
        let one = "1 pair meets more or less often than in the most even plan (never or once).";
        assert!(sentence.ends_with(one), "{sentence}");
    }

    #[test]
    fn the_origin_of_the_seed_is_a_sentence() {
        let origin = "<p>Seed: chosen by the organiser; no public beacon.</p>";
        assert_eq!(seed(None, 1).into_string(), origin);
    }

    #[test]
    fn bots_of_the_same_owner_are_named_only_if_there_are_some() {
        let of = |pairs, meetings| {
            let same_owner = Some(SameOwnerPairs { pairs, meetings });
            let mut all = sentences(&Certificate { same_owner, ..counted(&[(1, 10)]) });
            all.retain(|sentence| sentence.contains("owner"));
            all
        };
        assert!(of(0, 0).is_empty());
        assert_eq!(of(1, 0), ["There is 1 pair of bots of the same owner. They never meet."]);
        assert_eq!(of(2, 0), ["There are 2 pairs of bots of the same owner. They never meet."]);
        let together = "There are 2 pairs of bots of the same owner. Together they meet 3 times.";
        assert_eq!(of(2, 3), [together]);
    }

    #[test]
    fn one_of_something_is_not_called_many() {
        let one = Certificate {
            bots: 2,
            matches: 1,
            same_owner: Some(SameOwnerPairs { pairs: 1, meetings: 1 }),
            opponents_of_bot: Some(1..=1),
            matches_of_bot: 1..=1,
            times_in_seat: 0..=1,
            side_spread: None,
            ..counted(&[(1, 1)])
        };
        let sentences = sentences(&one);
        let expected = [
            "There are 2 bots and 1 match, 2 bots in each.",
            "Every pair of bots meets in exactly 1 match.",
            "There is 1 pair of bots of the same owner. They meet once.",
            "Every bot plays 1 match.",
        ];
        assert_eq!(sentences[..4], expected);
    }
}
