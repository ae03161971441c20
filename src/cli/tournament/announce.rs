//! `arbiter tournament announce T TEXT`: posts an announcement on the page of a tournament.

use arbiter_proto::v1::{
    Announcement, PostAnnouncementRequest, RemoveAnnouncementRequest, Tournament,
};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::client::ResponseArgs;
use crate::failure::Failure;
use crate::output::moment_json;

/// Post an announcement on the page of a tournament, or remove one.
#[derive(Debug, Args)]
#[command(after_help = "Everyone sees announcements, the newest first.

Examples:
  arbiter tournament announce finals \"Entry closes **on Friday**.\"
  arbiter tournament announce finals --remove 3")]
pub(super) struct Announce {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The text, as Markdown, at most 2000 bytes.
    #[arg(value_name = "TEXT", required_unless_present = "remove")]
    text: Option<String>,
    /// Remove the announcement with this number.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    remove: Option<i32>,
    #[command(flatten)]
    response: ResponseArgs,
}

impl Announce {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, text, remove, response } = self;
        let changed = if let Some(number) = remove {
            response.client.send(RemoveAnnouncementRequest { tournament, number })?
        } else {
            let text = text.unwrap_or_default();
            response.client.send(PostAnnouncementRequest { tournament, text })?
        };
        response.print(
            || json!({ "announcements": announcements_json(&changed) }),
            |out| out.line(&done(&changed, remove)),
        )
    }
}

/// What was done, in one line.
fn done(tournament: &Tournament, removed: Option<i32>) -> String {
    let name = &tournament.name;
    if let Some(number) = removed {
        return format!("announcement {number} of {name} is removed");
    }
    let newest = tournament.announcements.first();
    let number = newest.map_or(0, |announcement| announcement.number);
    format!("announcement {number} of {name} is posted")
}

/// The announcements of a tournament as JSON.
pub(super) fn announcements_json(tournament: &Tournament) -> Value {
    let announcement = |Announcement { number, at_us, text }: &Announcement| json!({ "number": number, "at": moment_json(*at_us), "text": text });
    tournament.announcements.iter().map(announcement).collect()
}
