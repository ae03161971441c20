//! `arbiter token …`: what lets people and workers in, for administrators.

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::coordinator;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, RevokeTokenRequest,
    RotateTokenRequest, RotateTokenResponse, Token,
};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::client::Client;
use super::moments::{When, micros, span, when};
use crate::failure::Failure;
use crate::output::tell;
use crate::output::{Columns, Output, moment, moment_json};

/// Let people and workers in: for administrators.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ARBITER_TOKEN=$(arbiter token create --role worker --name cellar) arbiter worker …
  arbiter token list
  arbiter token rotate cellar --overlap 1h
  arbiter token revoke 3")]
pub(super) struct Tokens {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    Rotate(Rotate),
    Revoke(Revoke),
    List(List),
}

impl Tokens {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Create(create) => create.run(),
            Command::Rotate(rotate) => rotate.run(),
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
    /// When it ends by itself: a time, or how long from now.
    #[arg(long, value_name = "TIME", value_parser = when)]
    expires: Option<When>,
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
        let Self { role, name, expires, json, database_url, client } = self;
        let name = name.unwrap_or_else(|| role.clone());
        access::check_name(&name).map_err(Failure::usage)?;
        let now = OffsetDateTime::now_utc();
        let expires = expires.map(|end| end.ahead(now));
        if expires.is_some_and(|end| end <= now) {
            return Err(Failure::usage("--expires: a token has to end after it was made"));
        }
        let expires_us = expires.map_or(0, micros);
        let request = CreateTokenRequest { role: role.clone(), name: name.clone(), expires_us };
        let made = match database_url {
            Some(url) => super::runtime()?.block_on(create_in(&url, &role, &name, expires))?,
            None => client.run(async |server| {
                Ok(server.tokens().create_token(request).await?.into_inner())
            })?,
        };
        let mut out = Output::new();
        if json {
            let mut object =
                json!({"id": made.id, "role": role, "name": name, "token": made.token});
            if expires_us != 0 {
                object["expires"] = moment_json(expires_us);
            }
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
    role: &str,
    name: &str,
    expires: Option<OffsetDateTime>,
) -> Result<CreateTokenResponse, Failure> {
    let role: Role = role.parse().map_err(Failure::usage)?;
    let options = coordinator::database(url).map_err(Failure::usage)?;
    let pool = coordinator::open(options, 1).await?;
    let made = access::create_noted(&pool, role, name, expires, OffsetDateTime::now_utc()).await;
    let failed = |error| Failure::Negative(format!("cannot store the token: {error}"));
    let (id, secret) = made.map_err(failed)?;
    Ok(CreateTokenResponse { id: id.0, token: secret.text().to_owned() })
}

/// Give a token another secret and print it: it cannot be shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "The token stays what it is: its name, its role, its bots. Until --overlap \
is over the secret before
lets in as well; by then whoever uses it has to have the new one. A worker takes another token when
it is started again.

Examples:
  arbiter token rotate cellar
  arbiter token rotate 3 --overlap 7d
  arbiter token rotate 3 --overlap 0s"
)]
struct Rotate {
    /// Its identity, as `arbiter token list` shows it, or its name.
    #[arg(value_name = "ID|NAME")]
    which: String,
    /// How long the present secret lets in beside the new one, at most 30d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    overlap: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Rotate {
    fn run(self) -> Result<(), Failure> {
        let overlap_us = i64::try_from(self.overlap.whole_microseconds()).unwrap_or(i64::MAX);
        let request = RotateTokenRequest { token: self.which, overlap_us };
        let rotated = self
            .client
            .run(async |server| Ok(server.tokens().rotate_token(request).await?.into_inner()))?;
        let RotateTokenResponse { id, role, name, token, former_until_us } = rotated;
        let mut out = Output::new();
        if self.json {
            let until =
                if former_until_us == 0 { Value::Null } else { moment_json(former_until_us) };
            out.json(&json!({"id": id, "role": role, "name": name, "token": token,
                "former_until": until}))?;
        } else {
            let former = match former_until_us {
                0 => "the former secret lets nobody in any more".to_owned(),
                until => format!("the former secret lets in until {}", moment(until)),
            };
            tell(&format!("token {id} for {role} {name}; it is shown this once, {former}"));
            out.line(&token)?;
        }
        out.flush()
    }
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
        let header = ["id", "role", "name", "made", "last used", "expires", ""];
        let mut table = Columns::new(header, &[1, 2, 3, 4, 5, 6]);
        let now = micros(OffsetDateTime::now_utc());
        for token in tokens {
            if self.json {
                out.json(&object(&token))?;
            } else {
                let time = |micros| if micros == 0 { "-".to_owned() } else { moment(micros) };
                let state = state(&token, now);
                let times = [token.created_us, token.used_us, token.expires_us].map(time);
                let named = [token.id.to_string(), token.role, token.name];
                table.push(named.into_iter().chain(times).chain([state]).collect());
            }
        }
        if !self.json {
            out.table(&table)?;
        }
        out.flush()
    }
}

/// Whether a token still lets in, and what else is to be known of it.
fn state(token: &Token, now: i64) -> String {
    match token {
        Token { revoked: true, .. } => "revoked".to_owned(),
        Token { expires_us, .. } if *expires_us != 0 && *expires_us <= now => "expired".to_owned(),
        Token { former_until_us: 0, .. } => String::new(),
        Token { former_until_us, .. } => {
            format!("former secret until {}", moment(*former_until_us))
        }
    }
}

fn object(token: &Token) -> Value {
    let time = |micros| if micros == 0 { Value::Null } else { moment_json(micros) };
    json!({
        "id": token.id, "role": token.role, "name": token.name, "revoked": token.revoked,
        "created": time(token.created_us), "used": time(token.used_us),
        "expires": time(token.expires_us), "former_until": time(token.former_until_us),
    })
}
