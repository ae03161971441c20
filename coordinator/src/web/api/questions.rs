//! Everything that can be asked, as a table: the address, what the question is about, its parameters,
//! and what comes back. The comments are the words of the interface's description.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Listed;
use super::bots::{Bot, Log, Trial, Version};
use super::matches::{Film, Match, Planned};
use super::operation::{Aside, Change, Playing, Server, Token, Worker};
use super::paging::{Limit, Page};
use super::question::Question;
use super::ranking::{Meeting, Placed, Ranking};
use super::reply::Lines;
use super::tournaments::{Certificate, Check, Edition, Estimate, Tournament};
use crate::access::Role;

/// Declares questions, and `listed`, which adds them all in the order of their declaration.
macro_rules! questions {
    ($(
        $(#[$meta:meta])*
        $name:ident -> $reply:ty, about $about:literal at $path:literal $(for $role:ident)? {
            $($fields:tt)*
        }
    )+) => {
        $(
            parameters! { [$(#[$meta])* $name] {} $($fields)* }

            impl Question for $name {
                const PATH: &'static str = concat!("/api/v1/", $path);
                const ABOUT: &'static str = $about;
                $(const ROLE: Option<Role> = Some(Role::$role);)?
                type Reply = $reply;
            }
        )+

        /// Every question.
        pub(super) fn listed(listed: Listed) -> Listed {
            listed$(.with::<$name>())+
        }
    };
}

/// Declares what a question is read from. A parameter that many questions have is a word or two;
/// others are declared as fields are, with `?` where they may be left out.
macro_rules! parameters {
    ([$(#[$meta:meta])* $name:ident] { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name { $($fields)* }
    };
    ($head:tt { $($fields:tt)* } tournament; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            /// The tournament's name.
            pub(super) tournament: String,
        } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } bot; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            /// The bot's name.
            pub(super) bot: String,
        } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } edition or official; $($rest:tt)*) => {
        parameters! { $head { $($fields)* }
            /// The edition's number; that of the official leaderboard if it is not given.
            edition?: Option<i32>;
            $($rest)*
        }
    };
    ($head:tt { $($fields:tt)* } edition or newest; $($rest:tt)*) => {
        parameters! { $head { $($fields)* }
            /// The edition's number; the newest if it is not given.
            edition?: Option<i32>;
            $($rest)*
        }
    };
    ($head:tt { $($fields:tt)* } match; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            /// The identity of its edition.
            pub(super) edition: i32,
            /// Its number there.
            pub(super) number: i64,
        } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } page of $entries:literal; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            #[doc = concat!($entries, " to leave out at the top.")]
            #[serde(default)]
            pub(super) offset: u32,
            #[doc = concat!($entries, " on a page.")]
            #[serde(default)]
            pub(super) limit: Limit,
        } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } $(#[$meta:meta])* $field:ident: $type:ty; $($rest:tt)*) => {
        parameters! { $head { $($fields)* $(#[$meta])* pub(super) $field: $type, } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } $(#[$meta:meta])* $field:ident?: $type:ty; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            $(#[$meta])*
            #[serde(default)]
            pub(super) $field: $type,
        } $($rest)* }
    };
}

questions! {
    /// What this server is.
    AskServer -> Server, about "operation" at "server" {}

    /// All tournaments, the newest first.
    ListTournaments -> Page<Tournament>, about "tournaments" at "tournaments" {
        page of "Tournaments";
    }

    /// One tournament.
    GetTournament -> Tournament, about "tournaments" at "tournaments/{tournament}" {
        /// Its name.
        tournament: String;
    }

    /// The editions of a tournament, the newest first.
    ListEditions -> Page<Edition>, about "tournaments" at "tournaments/{tournament}/editions" {
        tournament; page of "Editions";
    }

    /// One edition.
    GetEdition -> Edition, about "tournaments" at "tournaments/{tournament}/editions/{edition}" {
        tournament;
        /// The edition's number.
        edition: i32;
    }

    /// A page of a leaderboard, the official one unless an edition is named.
    ///
    /// Before there is an official leaderboard it is that of the newest edition.
    GetRanking -> Ranking, about "leaderboards" at "tournaments/{tournament}/ranking" {
        tournament; edition or official;
        /// Only bots whose name holds this, capital or small.
        q?: String;
        page of "Places";
    }

    /// The place of a bot.
    GetPlace -> Placed, about "leaderboards" at "tournaments/{tournament}/bots/{bot}/place" {
        tournament; bot; edition or official;
    }

    /// The places of a bot in all complete editions, the newest first.
    GetHistory -> Page<Placed>,
        about "leaderboards" at "tournaments/{tournament}/bots/{bot}/history" {
        tournament; bot; page of "Places";
    }

    /// What a bot made of its matches against each of the others, in the order of their names.
    GetMeetings -> Page<Meeting>,
        about "leaderboards" at "tournaments/{tournament}/bots/{bot}/meetings" {
        tournament; bot; edition or official; page of "Opponents";
    }

    /// The bots of a tournament in the order of their first submission.
    ListBots -> Page<Bot>, about "bots" at "tournaments/{tournament}/bots" {
        tournament; page of "Bots";
    }

    /// One bot.
    GetBot -> Bot, about "bots" at "tournaments/{tournament}/bots/{bot}" {
        tournament; bot;
    }

    /// The versions of a bot, the newest first.
    ListVersions -> Page<Version>, about "bots" at "tournaments/{tournament}/bots/{bot}/versions" {
        tournament; bot; page of "Versions";
    }

    /// How the trial of a version goes, or went: for its owner and for organisers.
    GetTrial -> Trial,
        about "bots" at "tournaments/{tournament}/bots/{bot}/versions/{version}/trial" for Player {
        tournament; bot;
        /// The version's number; 0 stands for the newest.
        version: i32;
    }

    /// The matches of a bot and what went wrong in them, the newest first: for its owner and for
    /// organisers.
    GetLog -> Log, about "bots" at "tournaments/{tournament}/bots/{bot}/log" for Player {
        tournament; bot;
        /// Only matches that it forfeited.
        forfeits?: bool;
        /// Matches at most.
        limit?: Limit;
    }

    /// The matches of an edition that were played, in the order of their numbers.
    ListMatches -> Page<Match>, about "matches" at "tournaments/{tournament}/matches" {
        tournament; edition or official;
        /// Only matches of this bot.
        bot?: String;
        /// Only matches after this number.
        after?: Option<i64>;
        /// Matches on a page.
        limit?: Limit;
    }

    /// One match.
    GetMatch -> Match, about "matches" at "matches/{edition}/{number}" {
        match;
    }

    /// The record of a match, line by line: for organisers, and for the owners of its bots as far as it
    /// is theirs.
    GetRecord -> Lines, about "matches" at "matches/{edition}/{number}/record" for Player {
        match;
    }

    /// Steps of a match, replayed from its record by its rules: for whoever may see the record.
    GetSteps -> Film, about "matches" at "matches/{edition}/{number}/steps" for Player {
        match;
        /// The first step, from 0.
        from?: u32;
        /// Steps at most; never more than 50 are given.
        limit?: Limit;
    }

    /// All matches that are planned, in the order of their numbers.
    ListPlanned -> Page<Planned>, about "schedules" at "tournaments/{tournament}/schedule" {
        tournament; edition or newest;
        /// Only matches after this number.
        after?: Option<i64>;
        /// Matches on a page.
        limit?: Limit;
    }

    /// Counts who meets whom in an edition, or in the next one, and compares it with what its schedule
    /// promises.
    ///
    /// The next edition is for organisers, unless there is none yet.
    GetCertificate -> Certificate, about "schedules" at "tournaments/{tournament}/certificate" {
        tournament; edition or newest;
        /// The next one instead, as it would be if it were started now.
        next?: bool;
        /// The next one, if tables of four are planned from the beginning.
        fresh?: bool;
    }

    /// What the next edition would come to if it were started now.
    GetEstimate -> Estimate,
        about "schedules" at "tournaments/{tournament}/estimate" for Organiser {
        tournament;
        /// Whether tables of four are planned from the beginning, whatever was planned before.
        fresh?: bool;
    }

    /// Computes the sums of an edition anew from its reports, and compares them with its standings.
    GetCheck -> Check, about "leaderboards" at "tournaments/{tournament}/check" {
        tournament;
        /// The edition's number. If it is not given: the official one of a tournament that is over, and
        /// the newest of one that is open.
        edition?: Option<i32>;
    }

    /// Matches that were set aside after too many faults, with the causes for organisers.
    ListAside -> Page<Aside>, about "operation" at "tournaments/{tournament}/aside" {
        tournament; page of "Matches";
    }

    /// The editions that are played, with their lots by state.
    GetQueue -> Page<Playing>, about "operation" at "queue" {
        page of "Editions";
    }

    /// Workers that have ever said hello, those heard of last first.
    ListWorkers -> Page<Worker>, about "operation" at "workers" for Organiser {
        page of "Workers";
    }

    /// Who changed what, the newest first: the last thousand changes.
    ListAudit -> Page<Change>, about "operation" at "audit" for Organiser {
        page of "Changes";
    }

    /// All tokens, the oldest first, without what makes them tokens.
    ListTokens -> Page<Token>, about "operation" at "tokens" for Admin {
        page of "Tokens";
    }
}
