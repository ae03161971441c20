//! `arbiter sync T DIR`: the bots of a directory, one a folder, are what one has in a tournament.

mod folders;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use arbiter_games::string_enum;
use arbiter_proto::v1::{Bot, ListBotsRequest, Version, WithdrawBotRequest};
use clap::Args;
use serde_json::{Value, json};

use self::folders::{Folders, Look};
use super::client::{Client, Server, interrupt};
use super::moments::interval;
use super::submit::Packed;
use crate::failure::Failure;
use crate::output::{hex, print, say, tell};

/// Bring your bots of a tournament into line with a directory that has one folder a bot: new and
/// changed ones are submitted, those whose folders are gone withdrawn.
#[derive(Debug, Args)]
#[command(
    after_help = "A bot is known by the name in its manifest. One that is as it was submitted last \
is not sent again;
one that was withdrawn and whose folder is back takes part again. Folders whose names begin with a
dot are left alone. A folder that cannot be packed is told of and the others go on (exit code 1);
nothing is withdrawn as long as there is one, for nobody knows whose it is.

Examples:
  arbiter sync finals bots/
  arbiter sync finals bots/ --dry-run
  arbiter sync finals checkout/bots --watch --every 30s"
)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
pub(super) struct Sync {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The directory: a checkout, for example.
    dir: PathBuf,
    /// Look again and again, until Ctrl-C.
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// How often to look, with --watch: 1s to 24h.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    every: Duration,
    /// Withdraw nothing.
    #[arg(long)]
    keep: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// As house bots, which nobody owns: for organisers.
    #[arg(long)]
    house: bool,
    /// Print one JSON object a change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

string_enum! {
    /// Something that is done to a bot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Change {
        /// Its first version is submitted.
        Enters = "entered",
        /// Another version is.
        Changes = "changed",
        /// It was withdrawn, and takes part again.
        ComesBack = "back",
        /// It is withdrawn.
        Leaves = "withdrawn",
    }
}

impl Change {
    /// What a bot with this name is said to do, once it is done.
    fn told(self, version: Option<i32>) -> String {
        let version = version.map(|number| format!(" with version {number}")).unwrap_or_default();
        match self {
            Self::Enters => format!("entered{version}"),
            Self::Changes => format!("goes on{version}"),
            Self::ComesBack => format!("is back{version}"),
            Self::Leaves => "withdrawn".to_owned(),
        }
    }

    /// The same before it is done.
    fn planned(self) -> &'static str {
        match self {
            Self::Enters => "would enter",
            Self::Changes => "would go on with a new version",
            Self::ComesBack => "would be back",
            Self::Leaves => "would be withdrawn",
        }
    }
}

impl Sync {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.client.run(async |server| {
            if self.watch {
                return self.watch(&server).await;
            }
            let mut folders = Folders::new(&self.dir, self.house);
            let look = folders.look()?;
            match self.bring(&server, &look).await? {
                0 => Ok(()),
                1 => Err(Failure::Negative("1 folder was left out".to_owned())),
                more => Err(Failure::Negative(format!("{more} folders were left out"))),
            }
        })
    }

    /// Looks again and again. What fails is told, and tried again at the next look.
    async fn watch(&self, server: &Server) -> Result<(), Failure> {
        let mut folders = Folders::new(&self.dir, self.house);
        let mut told = None;
        // What does not work at all at the first look is a wrong call.
        let mut first = true;
        loop {
            let work = async {
                let look = folders.look()?;
                if look.news {
                    let left_out = self.bring(server, &look).await?;
                    folders.settled = left_out == 0;
                }
                Ok(())
            };
            let done = tokio::select! {
                done = work => done,
                () = interrupt() => return Ok(()),
            };
            match done {
                Ok(()) => told = None,
                Err(Failure::Unread) => return Err(Failure::Unread),
                Err(failure) if first => return Err(failure),
                // The same again is no news.
                Err(failure) if told.as_deref() == Some(failure.message()) => {}
                Err(failure) => {
                    tell(&format!("error: {}; trying again", failure.message()));
                    told = Some(failure.message().to_owned());
                }
            }
            first = false;
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                () = interrupt() => return Ok(()),
            }
        }
    }

    /// Does what is to be done, and returns how many folders were left out.
    async fn bring(&self, server: &Server, look: &Look) -> Result<usize, Failure> {
        let request = ListBotsRequest { tournament: self.tournament.clone() };
        let listed = server.ask(request).await?.bots;
        let listed: BTreeMap<_, _> =
            listed.into_iter().map(|bot| (bot.name.clone(), bot)).collect();
        let mut left_out = look.unfit.len();
        for (folder, why) in look.unfit.iter().filter(|(_, why)| !why.is_empty()) {
            tell(&format!("{folder} is left out: {why}"));
        }
        for (name, packed) in &look.bots {
            let before = listed.get(name);
            if before.is_some_and(|bot| !self.is_ours(bot)) {
                let why = "the name is taken by somebody else's bot; choose another";
                tell(&format!("{name} is left out: {why}"));
                left_out += 1;
                continue;
            }
            let Some(change) = due(before, packed) else { continue };
            let sent = if self.dry_run {
                Ok(None)
            } else {
                packed.submit(server, &self.tournament, self.house).await.map(Some)
            };
            match sent {
                Ok(version) => self.say(name, change, version.as_ref())?,
                // Others may be taken where this one is not.
                Err(Failure::Negative(why) | Failure::Usage(why)) => {
                    tell(&format!("{name} is left out: {why}"));
                    left_out += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
        if !self.keep && left_out == 0 {
            self.withdraw(server, look, &listed).await?;
        }
        Ok(left_out)
    }

    /// Withdraws the bots that have no folder.
    async fn withdraw(
        &self,
        server: &Server,
        look: &Look,
        listed: &BTreeMap<String, Bot>,
    ) -> Result<(), Failure> {
        let here: BTreeSet<_> = look.bots.keys().collect();
        let gone = listed.values().filter(|bot| self.is_ours(bot) && !bot.withdrawn);
        for bot in gone.filter(|bot| !here.contains(&bot.name)) {
            if !self.dry_run {
                let (tournament, bot) = (self.tournament.clone(), bot.name.clone());
                server.ask(WithdrawBotRequest { tournament, bot }).await?;
            }
            self.say(&bot.name, Change::Leaves, None)?;
        }
        Ok(())
    }

    /// Whether a bot is one of those that the directory stands for.
    fn is_ours(&self, bot: &Bot) -> bool {
        if self.house { bot.owner.is_empty() } else { bot.owned_by_caller }
    }

    /// Tells of a change.
    fn say(&self, bot: &str, change: Change, version: Option<&Version>) -> Result<(), Failure> {
        if self.json {
            print(|out| out.json(&self.change_json(bot, change, version)))
        } else if self.dry_run {
            say(&format!("{bot} {}", change.planned()))
        } else {
            say(&format!("{bot} {}", change.told(version.map(|version| version.number))))
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

/// What is to be done with a bot that has a folder; nothing, if it takes part as it is.
fn due(before: Option<&Bot>, packed: &Packed) -> Option<Change> {
    let Some(before) = before else { return Some(Change::Enters) };
    if before.withdrawn {
        return Some(Change::ComesBack);
    }
    // One that waits for its trial, or failed it, is not sent again.
    let newest = before.pending.as_ref().or(before.newest.as_ref());
    let newest = newest.map(|version| version.digest.as_slice());
    (newest != Some(packed.digest().as_slice())).then_some(Change::Changes)
}
