//! Whether bots can enter a tournament and its leaderboards are frozen, in words for pages.

use arbiter_proto::v1::Tournament;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::{deadline, layout};
use crate::service::{EntryState, TournamentEnd};

/// When the leaderboards of a tournament will freeze, if this is in the future.
pub(super) fn freeze_of(tournament: &Tournament) -> Option<OffsetDateTime> {
    let is_ahead = tournament.state == "open" && tournament.freeze_notice.is_empty();
    tournament.freeze_at_us.filter(|_| is_ahead).and_then(layout::from_micros)
}

/// The state of entry of a tournament.
pub(super) fn entry_of(tournament: &Tournament) -> EntryState {
    let closes = tournament.closes_at_us.and_then(layout::from_micros);
    match closes {
        _ if tournament.state != "open" => EntryState::Over(TournamentEnd {
            is_cancelled: tournament.state == "cancelled",
            at: tournament.ended_at_us.and_then(layout::from_micros),
        }),
        _ if !tournament.rehearsal_of.is_empty() => EntryState::Rehearsal,
        Some(closes) if !tournament.entry_open => EntryState::Closed(closes),
        closes => EntryState::Open(closes),
    }
}

/// A notice while the leaderboards of a tournament are frozen, from the `freeze_notice` of its
/// message, with one more sentence.
pub(super) fn frozen_notice(freeze_notice: &str, more: &str) -> Markup {
    html! {
        @if !freeze_notice.is_empty() {
            p.notice.frozen role="note" {
                strong { "Leaderboards are " (freeze_notice) "." }
                @if !more.is_empty() { " " (more) }
            }
        }
    }
}

/// When the leaderboards will freeze, if this is in the future.
pub(super) fn freeze_text(freezes_at: Option<OffsetDateTime>, now: OffsetDateTime) -> Markup {
    html! {
        @if let Some(at) = freezes_at {
            p { (deadline::sentence("Leaderboards freeze at", at, now, "Leaderboards are frozen.")) }
        }
    }
}

/// What the next edition will lack if one more bot enters, if it will lack anything.
pub(super) fn new_bot_outlook(tournament: &Tournament) -> Markup {
    let outlook = &tournament.new_bot_outlook;
    html! {
        @if !outlook.is_empty() { p { "With one more bot: " (layout::end_of_sentence(outlook)) } }
    }
}

/// The state of a tournament and of its entry in a page that does not change with time.
pub(super) fn state_at_export(tournament: &Tournament) -> Markup {
    let until = |closes| html! { ", and bots could enter until " (layout::time(closes)) };
    html! {
        @match entry_of(tournament) {
            EntryState::Over(end) => (end_text(end)),
            EntryState::Rehearsal => "At the time of export it was open.",
            EntryState::Open(closes) => {
                "At the time of export it was open"
                @if let Some(closes) = closes { (until(closes)) } @else { ", and bots could enter" }
                "."
            },
            EntryState::Closed(closed) => {
                "At the time of export it was open, and entry had closed at " (layout::time(closed)) "."
            },
        }
    }
}

/// How a tournament ended.
fn end_text(TournamentEnd { is_cancelled, at }: TournamentEnd) -> Markup {
    html! {
        "The tournament is over. It was "
        @if is_cancelled { "cancelled" } @else { "closed" }
        @if let Some(at) = at { " on " (layout::time(at)) }
        "."
    }
}

/// The state in a sentence or two.
pub(super) fn entry_text(entry: EntryState, now: OffsetDateTime) -> Markup {
    html! {
        @match entry {
            EntryState::Open(None) => "Entry is open.",
            EntryState::Open(Some(closes)) => {
                (deadline::sentence("Entry is open until", closes, now, "Entry has closed."))
            },
            EntryState::Closed(closed) => {
                "Entry closed " (layout::time(closed))
                ". Owners can no longer enter, change or withdraw bots."
            },
            EntryState::Rehearsal => {
                "A rehearsal has copies of the bots of another tournament. No bot can enter or leave it."
            },
            EntryState::Over(end) => (end_text(end)),
        }
    }
}
