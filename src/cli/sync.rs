//! `arbiter sync T DIR`: submits the bots of a directory and withdraws the others.

mod bot_dirs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use arbiter_games::string_enum;
use arbiter_proto::v1::{Bot, ListBotsRequest, ListBotsResponse, Version, WithdrawBotRequest};
use clap::Args;
use serde_json::{Value, json};

use self::bot_dirs::{BotDirs, Scan};
use super::client::{Client, Server, interrupt};
use super::submit::PackedBot;
use super::time_arg::interval;
use crate::failure::Failure;
use crate::output::{eprint_line, hex, print, print_line};

/// Submit new and changed bots of a directory and withdraw the missing ones.
#[derive(Debug, Args)]
#[command(after_help = "The directory has one folder per bot; the manifest in it names the bot. \
    Unchanged bots are not sent again. A withdrawn bot whose folder is back takes part again. \
    Folders whose names start with a dot are ignored. If a folder cannot be packed, the others \
    continue and the exit code is 1. Nothing is withdrawn then, because the name of that bot is \
    unknown.

Examples:
  arbiter sync finals bots/
  arbiter sync finals bots/ --dry-run
  arbiter sync finals checkout/bots --watch --every 30s")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
pub(super) struct Sync {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The directory, for example a checkout.
    dir: PathBuf,
    /// Check for changes repeatedly, until Ctrl-C.
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// How often --watch checks: 1s to 24h.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    every: Duration,
    /// Do not withdraw bots.
    #[arg(long)]
    keep: bool,
    /// Only print the changes; do not make them.
    #[arg(long)]
    dry_run: bool,
    /// Submit house bots, which have no owner (for organisers).
    #[arg(long)]
    house: bool,
    /// Print one JSON object per change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

string_enum! {
    /// A change to a bot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Change {
        /// Its first version is submitted.
        Enters = "entered",
        /// Another version is submitted.
        Changes = "changed",
        /// It was withdrawn and takes part again.
        ComesBack = "back",
        /// It is withdrawn.
        Leaves = "withdrawn",
    }
}

impl Change {
    /// Describes the change after it was made.
    fn description(self, version: Option<i32>) -> String {
        let version = version.map(|number| format!(" with version {number}")).unwrap_or_default();
        match self {
            Self::Enters => format!("entered{version}"),
            Self::Changes => format!("updated{version}"),
            Self::ComesBack => format!("is back{version}"),
            Self::Leaves => "withdrawn".to_owned(),
        }
    }

    /// Describes the change before it is made.
    fn planned(self) -> &'static str {
        match self {
            Self::Enters => "would enter",
            Self::Changes => "would be updated",
            Self::ComesBack => "would be back",
            Self::Leaves => "would be withdrawn",
        }
    }
}

/// The bots of the tournament.
#[derive(Debug)]
struct ListedBots {
    by_name: BTreeMap<String, Bot>,
    /// The handle of the player, with which the names of its bots begin; empty for organisers.
    handle: String,
}

impl Sync {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.client.run(async |server| {
            if self.watch {
                return self.watch(&server).await;
            }
            let mut bot_dirs = BotDirs::new(&self.dir, self.house);
            let scan = bot_dirs.scan()?;
            match self.apply(&server, &scan).await? {
                0 => Ok(()),
                1 => Err(Failure::Negative("1 folder was skipped".to_owned())),
                more => Err(Failure::Negative(format!("{more} folders were skipped"))),
            }
        })
    }

    /// Scans repeatedly. Reports failures and retries at the next scan.
    async fn watch(&self, server: &Server) -> Result<(), Failure> {
        let mut bot_dirs = BotDirs::new(&self.dir, self.house);
        let mut last_error = None;
        // Only a failure of the first scan ends the command: it indicates wrong usage.
        let mut first = true;
        loop {
            let work = async {
                let scan = bot_dirs.scan()?;
                if scan.changed {
                    let skipped = self.apply(server, &scan).await?;
                    bot_dirs.settled = skipped == 0;
                }
                Ok(())
            };
            let result = tokio::select! {
                result = work => result,
                () = interrupt() => return Ok(()),
            };
            match result {
                Ok(()) => last_error = None,
                Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
                Err(failure) if first => return Err(failure),
                // Report the same error only once.
                Err(failure) if last_error.as_deref() == Some(failure.message()) => {}
                Err(failure) => {
                    eprint_line(&format!("error: {}; retrying", failure.message()));
                    last_error = Some(failure.message().to_owned());
                }
            }
            first = false;
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                () = interrupt() => return Ok(()),
            }
        }
    }

    /// Submits and withdraws bots; returns how many folders were skipped.
    async fn apply(&self, server: &Server, scan: &Scan) -> Result<usize, Failure> {
        let request = ListBotsRequest { tournament: self.tournament.clone() };
        let ListBotsResponse { bots, handle } = server.send(request).await?;
        let by_name = bots.into_iter().map(|bot| (bot.name.clone(), bot));
        let listed = ListedBots { by_name: by_name.collect(), handle };
        let mut skipped = scan.invalid.len();
        for (folder, why) in scan.invalid.iter().filter(|(_, why)| !why.is_empty()) {
            eprint_line(&format!("skipped {folder}: {why}"));
        }
        for (name, packed) in &scan.bots {
            let name = &self.entrant(&listed, name);
            let before = listed.by_name.get(name);
            if before.is_some_and(|bot| !self.is_ours(bot)) {
                let why = "another owner's bot has this name; choose another";
                eprint_line(&format!("skipped {name}: {why}"));
                skipped += 1;
                continue;
            }
            let Some(change) = change(before, packed) else { continue };
            let result = if self.dry_run {
                Ok(None)
            } else {
                packed.submit(server, &self.tournament, self.house).await.map(Some)
            };
            match result {
                Ok(version) => self.print_change(name, change, version.as_ref())?,
                // The coordinator may accept the others.
                Err(Failure::Negative(why) | Failure::Usage(why)) => {
                    eprint_line(&format!("skipped {name}: {why}"));
                    skipped += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
        if !self.keep && skipped == 0 {
            self.withdraw(server, scan, &listed).await?;
        }
        Ok(skipped)
    }

    /// Withdraws bots without a folder.
    async fn withdraw(
        &self,
        server: &Server,
        scan: &Scan,
        listed: &ListedBots,
    ) -> Result<(), Failure> {
        let names: BTreeSet<_> = scan.bots.keys().map(|name| self.entrant(listed, name)).collect();
        let active = listed.by_name.values().filter(|bot| self.is_ours(bot) && !bot.withdrawn);
        for bot in active.filter(|bot| !names.contains(&bot.name)) {
            if !self.dry_run {
                let tournament = self.tournament.clone();
                let bot = bot.name.clone();
                server.send(WithdrawBotRequest { tournament, bot }).await?;
            }
            self.print_change(&bot.name, Change::Leaves, None)?;
        }
        Ok(())
    }

    /// The name in the tournament of the bot with this name in its folder: for a player with the
    /// handle before it, unless the player has a bot from before there were handles.
    fn entrant(&self, ListedBots { by_name, handle }: &ListedBots, name: &str) -> String {
        let is_plain = handle.is_empty() || by_name.get(name).is_some_and(|bot| self.is_ours(bot));
        if is_plain { name.to_owned() } else { format!("{handle}/{name}") }
    }

    /// Whether the directory manages this bot.
    fn is_ours(&self, bot: &Bot) -> bool {
        if self.house { bot.owner.is_empty() } else { bot.owned_by_caller }
    }

    /// Prints a change.
    fn print_change(
        &self,
        bot: &str,
        change: Change,
        version: Option<&Version>,
    ) -> Result<(), Failure> {
        if self.json {
            print(|out| out.json(&self.change_json(bot, change, version)))
        } else if self.dry_run {
            print_line(&format!("{bot} {}", change.planned()))
        } else {
            print_line(&format!(
                "{bot} {}",
                change.description(version.map(|version| version.number))
            ))
        }
    }

    fn change_json(&self, bot: &str, change: Change, version: Option<&Version>) -> Value {
        json!({
            "bot": bot,
            "change": change.as_str(),
            "version": version.map(|version| version.number),
            "digest": version.map(|version| hex(&version.digest)),
            "done": !self.dry_run,
        })
    }
}

/// The change to make for a bot with a folder; `None` if it is up to date.
fn change(before: Option<&Bot>, packed: &PackedBot) -> Option<Change> {
    let Some(before) = before else { return Some(Change::Enters) };
    if before.withdrawn {
        return Some(Change::ComesBack);
    }
    // A version that waits for its trial, or has failed its trial, is not sent again.
    let newest =
        before.pending.as_ref().or(before.newest.as_ref()).map(|version| version.digest.as_slice());
    (newest != Some(packed.digest().as_slice())).then_some(Change::Changes)
}
