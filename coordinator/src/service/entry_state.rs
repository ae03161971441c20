//! Whether bots can enter a tournament, in words for people. Pages, commands and refusals use the
//! same words.

use time::OffsetDateTime;

use super::leaderboard_freeze::entry_rules;
use super::{Result, Service, format_time};
use crate::db::tournaments::{Tournament, TournamentState};

/// Whether bots can enter a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// Owners can enter bots, until this time if there is one.
    Open(Option<OffsetDateTime>),
    /// Entry closed at this time.
    Closed(OffsetDateTime),
    /// It is a rehearsal, which has copies of the bots of another tournament.
    Rehearsal,
    /// The tournament is over.
    Over(TournamentEnd),
}

/// How a tournament ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TournamentEnd {
    /// Whether it was cancelled. Otherwise it was closed.
    pub(crate) is_cancelled: bool,
    /// When it ended. None if this is not known.
    pub(crate) at: Option<OffsetDateTime>,
}

impl EntryState {
    /// The state at a time.
    pub(super) fn of(tournament: &Tournament, now: OffsetDateTime) -> Result<Self> {
        if tournament.state != TournamentState::Open {
            let is_cancelled = tournament.state == TournamentState::Cancelled;
            return Ok(Self::Over(TournamentEnd { is_cancelled, at: tournament.ended_at }));
        }
        if tournament.rehearsal.is_some() {
            return Ok(Self::Rehearsal);
        }
        let closes = entry_rules(tournament)?.closes.map(|closes| closes.0);
        Ok(match closes {
            Some(closes) if closes <= now => Self::Closed(closes),
            closes => Self::Open(closes),
        })
    }

    /// Whether owners can enter bots.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// The state of a tournament's entry in one line, with the reason if it is closed.
    pub(super) fn text(self, tournament: &Tournament) -> String {
        let rehearsal = tournament.rehearsal.as_ref();
        let original = rehearsal.map_or("", |rehearsal| &rehearsal.original);
        let tournament = &tournament.name;
        match self {
            Self::Open(None) => {
                format!("entry to {tournament} is open; an owner needs a token of role player")
            }
            Self::Open(Some(closes)) => format!(
                "entry to {tournament} is open until {}; an owner needs a token of role player",
                format_time(closes)
            ),
            Self::Closed(closed) => format!(
                "entry to {tournament} closed at {}: owners can no longer enter, change or withdraw bots",
                format_time(closed)
            ),
            Self::Rehearsal => format!(
                "the tournament {tournament} is a rehearsal of {original} with copies of its bots: no \
                 bot can enter or leave it; submit to {original}"
            ),
            Self::Over(TournamentEnd { is_cancelled, at }) => {
                let how = if is_cancelled { "cancelled" } else { "closed" };
                let at = at.map(|at| format!(" at {}", format_time(at))).unwrap_or_default();
                format!(
                    "tournament {tournament} is over: it was {how}{at}; no bot can enter or leave"
                )
            }
        }
    }
}

/// The words for a tournament that was cancelled. Empty if it was not.
pub(super) fn cancel_notice(tournament: &Tournament) -> String {
    if tournament.state != TournamentState::Cancelled {
        return String::new();
    }
    let at = tournament.ended_at.map(|at| format!(" at {}", format_time(at)));
    format!("the tournament was cancelled{}", at.unwrap_or_default())
}

impl Service {
    /// Whether bots can enter a tournament now.
    pub(super) fn entry_state(&self, tournament: &Tournament) -> Result<EntryState> {
        EntryState::of(tournament, self.now())
    }
}
