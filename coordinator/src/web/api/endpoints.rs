//! The table of all endpoints: path, tag, parameters and response type. The doc comments become the
//! texts of the OpenAPI document.

use schemars::JsonSchema;
use serde::Deserialize;

use super::EndpointRegistry;
use super::administration::{AuditEntry, RunningEdition, ServerInfo, SetAsideMatch, Token, Worker};
use super::bots::{Bot, BotLog, Trial, Version};
use super::brackets::Bracket;
use super::endpoint::Endpoint;
use super::leaderboards::{EditionStanding, HeadToHead, Leaderboard, Statistics};
use super::matches::{Match, MatchSteps, PlannedMatch};
use super::pagination::{Limit, Order, Page};
use super::response::RecordLines;
use super::rounds::EditionRounds;
use super::tournaments::{Certificate, Edition, EditionCheck, Estimate, Tournament};
use crate::access::Role;

/// Declares endpoints, and `register_all`, which registers them in the order of declaration.
macro_rules! endpoints {
    ($(
        $(#[$meta:meta])*
        $name:ident -> $response:ty, tag $tag:literal at $path:literal $(for $role:ident)? {
            $($fields:tt)*
        }
    )+) => {
        $(
            parameters! { [$(#[$meta])* $name] {} $($fields)* }

            impl Endpoint for $name {
                const PATH: &'static str = concat!("/api/v1/", $path);
                const TAG: &'static str = $tag;
                $(const ROLE: Option<Role> = Some(Role::$role);)?
                type Response = $response;
            }
        )+

        pub(super) fn register_all(registry: EndpointRegistry) -> EndpointRegistry {
            registry$(.with::<$name>())+
        }
    };
}

/// Declares the parameters of an endpoint. Common parameters have a short form of a word or two.
/// Others are declared like fields; `?` marks an optional one.
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
            /// The edition's number. Default: the official edition.
            edition?: Option<i32>;
            $($rest)*
        }
    };
    ($head:tt { $($fields:tt)* } edition or newest; $($rest:tt)*) => {
        parameters! { $head { $($fields)* }
            /// The edition's number. Default: the newest edition.
            edition?: Option<i32>;
            $($rest)*
        }
    };
    ($head:tt { $($fields:tt)* } edition or newest visible; $($rest:tt)*) => {
        parameters! { $head { $($fields)* }
            /// The edition's number. Default: the newest edition, or the official one while
            /// leaderboards are frozen for the caller.
            edition?: Option<i32>;
            $($rest)*
        }
    };
    ($head:tt { $($fields:tt)* } match; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            /// The tournament's name.
            pub(super) tournament: String,
            /// The number of the match in the tournament.
            pub(super) number: i64,
        } $($rest)* }
    };
    ($head:tt { $($fields:tt)* } page of $entries:literal; $($rest:tt)*) => {
        parameters! { $head {
            $($fields)*
            #[doc = concat!("Number of ", $entries, " to skip.")]
            #[serde(default)]
            pub(super) offset: u32,
            #[doc = concat!("Maximum number of ", $entries, " on a page.")]
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

endpoints! {
    /// The server's version and games.
    GetServer -> ServerInfo, tag "operations" at "server" {}

    /// All tournaments, newest first.
    ListTournaments -> Page<Tournament>, tag "tournaments" at "tournaments" {
        page of "tournaments";
    }

    /// A tournament.
    GetTournament -> Tournament, tag "tournaments" at "tournaments/{tournament}" {
        tournament;
    }

    /// The editions of a tournament, newest first.
    ListEditions -> Page<Edition>, tag "tournaments" at "tournaments/{tournament}/editions" {
        tournament; page of "editions";
    }

    /// An edition.
    GetEdition -> Edition, tag "tournaments" at "tournaments/{tournament}/editions/{edition}" {
        tournament;
        /// The edition's number.
        edition: i32;
    }

    /// A page of a leaderboard. Default: the official leaderboard.
    ///
    /// Before there is an official leaderboard, the default is the newest edition.
    GetLeaderboard -> Leaderboard, tag "leaderboards" at "tournaments/{tournament}/ranking" {
        tournament; edition or official;
        /// Only bots whose name contains this text, ignoring case.
        q?: String;
        page of "standings";
    }

    /// What can be concluded from the results of an edition: who is better, and how sure.
    ///
    /// Statistics are computed in the background. Until the first ones are complete the reply has
    /// the status 503.
    GetStatistics -> Statistics, tag "leaderboards" at "tournaments/{tournament}/statistics" {
        tournament; edition or official;
        /// Only bots whose name contains this text, ignoring case.
        q?: String;
        /// Whether to compare each two of the first 20 bots of the page.
        pairs?: bool;
        page of "bots";
    }

    /// The standing of a bot.
    GetStanding -> EditionStanding,
        tag "leaderboards" at "tournaments/{tournament}/bots/{bot}/standing" {
        tournament; bot; edition or official;
    }

    /// The standings of a bot in all complete editions, newest first.
    GetHistory -> Page<EditionStanding>,
        tag "leaderboards" at "tournaments/{tournament}/bots/{bot}/history" {
        tournament; bot; page of "standings";
    }

    /// The results of a bot against each opponent, sorted by name.
    GetHeadToHead -> Page<HeadToHead>,
        tag "leaderboards" at "tournaments/{tournament}/bots/{bot}/head-to-head" {
        tournament; bot; edition or official; page of "opponents";
    }

    /// The bots of a tournament, in the order of their first submission.
    ListBots -> Page<Bot>, tag "bots" at "tournaments/{tournament}/bots" {
        tournament; page of "bots";
    }

    /// One bot of a tournament.
    GetBot -> Bot, tag "bots" at "tournaments/{tournament}/bots/{bot}" {
        tournament; bot;
    }

    /// The versions of a bot, newest first.
    ListVersions -> Page<Version>, tag "bots" at "tournaments/{tournament}/bots/{bot}/versions" {
        tournament; bot; page of "versions";
    }

    /// The trial of a version. For its owner and organisers.
    GetTrial -> Trial,
        tag "bots" at "tournaments/{tournament}/bots/{bot}/versions/{version}/trial" for Player {
        tournament; bot;
        /// The version's number; 0 for the newest.
        version: i32;
    }

    /// The matches of a bot and what went wrong in them, newest first. For its owner and
    /// organisers.
    GetLog -> BotLog, tag "bots" at "tournaments/{tournament}/bots/{bot}/log" for Player {
        tournament; bot;
        /// Only matches that the bot forfeited.
        forfeits?: bool;
        /// Maximum number of matches.
        limit?: Limit;
    }

    /// The played matches of an edition, by number.
    ListMatches -> Page<Match>, tag "matches" at "tournaments/{tournament}/matches" {
        tournament; edition or official;
        /// Only matches of this bot.
        bot?: String;
        /// Only matches of `bot` against this bot.
        opponent?: String;
        /// Only matches that `bot` forfeited; without `bot`, those that any bot forfeited.
        forfeit?: bool;
        /// Only matches of this version of `bot`. Without `edition`, those of the newest complete
        /// edition in which it takes part.
        version?: Option<i32>;
        /// By number: the smallest or the greatest first.
        order?: Order;
        /// Only matches that follow the match with this number in the order of the list.
        after?: Option<i64>;
        /// Maximum number of matches on a page.
        limit?: Limit;
    }

    /// A match.
    GetMatch -> Match, tag "matches" at "tournaments/{tournament}/matches/{number}" {
        match;
    }

    /// The record of a match, line by line. For organisers, for the owners of its bots and, if the
    /// tournament shows its replays, for everyone. Only organisers get the private data of others.
    GetRecord -> RecordLines,
        tag "matches" at "tournaments/{tournament}/matches/{number}/record" {
        match;
    }

    /// Steps of a match, replayed from its record. For callers who can see the record.
    GetMatchSteps -> MatchSteps,
        tag "matches" at "tournaments/{tournament}/matches/{number}/steps" {
        match;
        /// The first step, from 0.
        from?: u32;
        /// Maximum number of steps, at most 50.
        limit?: Limit;
    }

    /// The planned matches of an edition, by number.
    ListPlannedMatches -> Page<PlannedMatch>,
        tag "schedules" at "tournaments/{tournament}/schedule" {
        tournament; edition or newest;
        /// Only matches after this number.
        after?: Option<i64>;
        /// Maximum number of matches on a page.
        limit?: Limit;
    }

    /// The bracket of a knockout, as far as it is played.
    GetBracket -> Bracket, tag "schedules" at "tournaments/{tournament}/bracket" {
        tournament; edition or newest visible;
        /// The stage's number. Default: the last knockout that has begun.
        stage?: Option<u32>;
    }

    /// The rounds of an edition: its stages, and the standings and meetings of one of them.
    ///
    /// For schedules in rounds: swiss, ladder, gauntlet, knockout and stages.
    GetRounds -> EditionRounds, tag "schedules" at "tournaments/{tournament}/rounds" {
        tournament; edition or newest visible;
        /// The stage's number. Default: the last one that has begun.
        stage?: Option<u32>;
        /// Swiss and ladder: the number of the round that is listed, and after which the standings
        /// are. Default: the last one that is over, or the first. A knockout shows all rounds.
        round?: Option<u32>;
    }

    /// Counts how often bots meet in an edition, and compares it with the promise of its schedule.
    ///
    /// Only organisers can see the certificate of the next edition, unless it is the first one.
    GetCertificate -> Certificate, tag "schedules" at "tournaments/{tournament}/certificate" {
        tournament; edition or newest;
        /// The next edition instead, as if it started now.
        next?: bool;
        /// The next edition, with tables planned from scratch.
        fresh?: bool;
    }

    /// The estimated size and duration of the next edition, if it started now.
    GetEstimate -> Estimate,
        tag "schedules" at "tournaments/{tournament}/estimate" for Organiser {
        tournament;
        /// Whether to plan tables from scratch.
        fresh?: bool;
    }

    /// Recomputes the standings of an edition from its reports, and compares them.
    GetCheck -> EditionCheck, tag "leaderboards" at "tournaments/{tournament}/check" {
        tournament;
        /// The edition's number. Default: the newest edition of an open tournament, the official
        /// one of a tournament that is over.
        edition?: Option<i32>;
    }

    /// Matches that were set aside after too many faults. Organisers also see the causes.
    ListSetAsideMatches -> Page<SetAsideMatch>,
        tag "operations" at "tournaments/{tournament}/aside" {
        tournament; page of "matches";
    }

    /// The running editions, with their lots by state.
    GetQueue -> Page<RunningEdition>, tag "operations" at "queue" {
        page of "editions";
    }

    /// All workers that ever connected, the most recently seen first.
    ListWorkers -> Page<Worker>, tag "operations" at "workers" for Organiser {
        page of "workers";
    }

    /// The audit log: the last 1000 changes, newest first.
    ListAuditEntries -> Page<AuditEntry>, tag "operations" at "audit" for Organiser {
        page of "changes";
    }

    /// All tokens, oldest first, without their secrets.
    ListTokens -> Page<Token>, tag "operations" at "tokens" for Admin {
        page of "tokens";
    }
}
