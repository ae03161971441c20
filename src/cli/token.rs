//! `arbiter token …`: what lets people and workers in, for administrators.

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::coordinator;
use arbiter_coordinator::db::audit;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, RevokeTokenRequest,
};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::json;
use time::OffsetDateTime;

use super::client::Client;
use super::coordinator::unusable;
use super::output::{Columns, Output};
use super::{Failure, tell};

/// Let people and workers in: for administrators.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ARBITER_TOKEN=$(arbiter token create --role worker --name cellar) arbiter worker …
  arbiter token list
  arbiter token revoke 3")]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    Revoke(Revoke),
    List(List),
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Create(create) => create.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::List(list) => list.run(),
        }
    }
}

/// What tokens can allow.
const ROLES: [&str; 4] = ["admin", "organiser", "player", "worker"];

/// Make a token and print it: it cannot be shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "The first token of a database is made in the database itself, with --database-url: \
whoever may
open it needs no token, and no coordinator has to run.

Examples:
  arbiter token create --role admin --database-url postgres:///arbiter
  arbiter token create --role player --name ada
  arbiter token create --role worker --name cellar --json"
)]
struct Create {
    /// What it allows: everything, tournaments, bots of one's own, or playing matches.
    #[arg(long, value_parser = PossibleValuesParser::new(ROLES))]
    role: String,
    /// Whom or what it is for; the role if it is not given.
    #[arg(long)]
    name: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Make it in this database, as `postgres://USER@HOST/NAME`, and ask no coordinator.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    #[command(flatten)]
    client: Client,
}

impl Create {
    fn run(self) -> Result<(), Failure> {
        let Self { role, name, json, database_url, client } = self;
        let name = name.unwrap_or_else(|| role.clone());
        let request = CreateTokenRequest { role: role.clone(), name: name.clone() };
        let made = match database_url {
            Some(url) => super::runtime()?.block_on(create_in(&url, request))?,
            None => client.run(async |server| {
                Ok(server.tokens().create_token(request).await?.into_inner())
            })?,
        };
        let mut out = Output::new();
        if json {
            let object = json!({"id": made.id, "role": role, "name": name, "token": made.token});
            out.json(&object)?;
        } else {
            tell(&format!("token {} for {role} {name}; it is shown this once", made.id));
            out.line(&made.token)?;
        }
        out.flush()
    }
}

/// Makes a token in a database. Its tables are made first if they are not there.
async fn create_in(
    url: &str,
    CreateTokenRequest { role, name }: CreateTokenRequest,
) -> Result<CreateTokenResponse, Failure> {
    access::check_name(&name).map_err(Failure::usage)?;
    let role: Role = role.parse().map_err(Failure::usage)?;
    let options = coordinator::database(url).map_err(Failure::usage)?;
    let pool = coordinator::open(options, 1).await.map_err(unusable)?;
    let now = OffsetDateTime::now_utc();
    let made = access::create(&pool, role, &name, now).await;
    let failed = |error| Failure::Negative(format!("cannot store the token: {error}"));
    let (id, secret) = made.map_err(failed)?;
    let noted = format!("{id} {role} {name}");
    audit::write(&pool, None, "token create", &noted, None, now).await.map_err(failed)?;
    Ok(CreateTokenResponse { id: id.0, token: secret.text().to_owned() })
}

/// Revoke a token: it lets nobody in any more.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter token revoke 3")]
struct Revoke {
    /// Its identity, as `arbiter token list` shows it.
    id: i32,
    #[command(flatten)]
    client: Client,
}

impl Revoke {
    fn run(self) -> Result<(), Failure> {
        let request = RevokeTokenRequest { id: self.id };
        self.client.run(async |server| {
            server.tokens().revoke_token(request).await?;
            Ok(())
        })?;
        let mut out = Output::new();
        out.line(&format!("token {} is revoked", self.id))?;
        out.flush()
    }
}

/// List all tokens, without what makes them ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter token list
  arbiter token list --json")]
struct List {
    /// Print one JSON object a token.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let tokens = self.client.run(async |server| {
            Ok(server.tokens().list_tokens(ListTokensRequest {}).await?.into_inner().tokens)
        })?;
        let mut out = Output::new();
        let mut table = Columns::new(["id", "role", "name", ""], &[1, 2, 3]);
        for token in tokens {
            if self.json {
                let (id, role, name) = (token.id, token.role, token.name);
                let object = json!({"id": id, "role": role, "name": name,
                    "revoked": token.revoked});
                out.json(&object)?;
            } else {
                let revoked = if token.revoked { "revoked" } else { "" };
                table.push(vec![token.id.to_string(), token.role, token.name, revoked.to_owned()]);
            }
        }
        if !self.json {
            out.table(&table)?;
        }
        out.flush()
    }
}
