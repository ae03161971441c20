//! `arbiter token …`: manages access tokens: for administrators, and those of players for
//! organisers.

mod from_list;

use arbiter_coordinator::access::creation::{CreateTokenError, Name, Terms};
use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::coordinator::{self, PgConnectOptions};
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, RevokeTokenRequest,
    RevokeTokenResponse, RotateTokenRequest, RotateTokenResponse, Token,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::client::{Client, ResponseArgs};
use super::time_arg::{TimeArg, micros, span, time_arg};
use crate::failure::Failure;
use crate::output::{
    Columns, eprint_line, fields, merge, moment, moment_json, non_empty, print, print_line,
    printable,
};

/// Create, list, rotate and revoke access tokens (for administrators; organisers: of players).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ARBITER_TOKEN=$(arbiter token create --role worker --name cellar) \\
      arbiter worker …
  arbiter token create --role player --from students.csv \\
      --site https://arbiter.example --invitations cards.html
  arbiter token list --role player
  arbiter token rotate cellar --overlap 1h
  arbiter token revoke ada")]
pub(super) struct Tokens {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Box<Create>),
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

/// Create a token and print it, or many tokens (--from). They cannot be shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "Organisers create tokens of players, administrators all. Names are unique among \
    valid tokens. Create the first token directly in the database, with --database-url. This needs \
    access to the database, but no token and no running coordinator.

Examples:
  arbiter token create --role admin --database-url postgres:///arbiter
  arbiter token create --role player --name ada
  arbiter token create --role player --from students.csv --csv tokens.csv
  arbiter token create --role worker --name cellar --json"
)]
struct Create {
    /// admin: everything; organiser: tournaments; player: the owner's bots; worker: matches.
    #[arg(long, value_parser = role())]
    role: Role,
    /// The owner's name; by default the role, with a number if another token has that name.
    #[arg(long)]
    name: Option<String>,
    /// When it expires: a time, or a duration from now (for example 90d).
    #[arg(long, value_name = "TIME", value_parser = time_arg)]
    expires: Option<TimeArg>,
    /// Print one JSON object a token.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    list: from_list::FromList,
    /// Create it in this database, such as `postgres://USER@HOST/NAME`, without a coordinator.
    #[arg(long, value_name = "URL", value_parser = coordinator::parse_database_url)]
    database_url: Option<PgConnectOptions>,
    #[command(flatten)]
    client: Client,
}

/// Parses a role.
fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|role| role.parse::<Role>())
}

impl Create {
    fn run(self) -> Result<(), Failure> {
        let Self { role, name, expires, json, list, database_url, client } = self;
        let name = name.map(|name| name.trim().to_owned());
        if let Some(name) = &name {
            access::check_name(name).map_err(Failure::usage)?;
        }
        let now = OffsetDateTime::now_utc();
        let expires = expires.map(|end| end.after(now));
        if expires.is_some_and(|end| end <= now) {
            return Err(Failure::usage("--expires: choose a time in the future"));
        }
        let expires_at_us = expires.map_or(0, micros);
        if let Some(from) = &list.from {
            return list.run(from, role, expires_at_us, json, &client);
        }
        let response = if let Some(database) = database_url {
            super::runtime()?.block_on(create_in(database, role, name.as_deref(), expires))?
        } else {
            let name = name.clone().unwrap_or_default();
            client.send(CreateTokenRequest { role: role.to_string(), name, expires_at_us })?
        };
        let CreateTokenResponse { id, token, name } = &response;
        if json {
            let mut object = json!({"id": id, "role": role.as_str(), "name": name, "token": token});
            if expires_at_us != 0 {
                object["expires"] = moment_json(expires_at_us);
            }
            return print(|out| out.json(&object));
        }
        let created = format!("token {id} for {role} {name}; it cannot be shown again");
        eprint_line(&printable(&created));
        print_line(token)
    }
}

/// Creates a token in a database, and its tables if they do not exist.
async fn create_in(
    database: PgConnectOptions,
    role: Role,
    name: Option<&str>,
    expires_at: Option<OffsetDateTime>,
) -> Result<CreateTokenResponse, Failure> {
    let pool = coordinator::open(database, 1).await?;
    let name = name.map_or(Name::Numbered(role.as_str()), Name::Exact);
    let terms = Terms { role, expires_at, by: None };
    let created = access::create_audited(&pool, name, terms, OffsetDateTime::now_utc()).await?;
    let token = created.secret.text().to_owned();
    Ok(CreateTokenResponse { id: created.id.0, token, name: created.name })
}

impl From<CreateTokenError> for Failure {
    fn from(error: CreateTokenError) -> Self {
        match error {
            CreateTokenError::Database(error) => {
                Self::Negative(format!("cannot store the token: {error}"))
            }
            CreateTokenError::Names(names) => Self::usage(names),
        }
    }
}

/// Replace the secret of a token and print it. It cannot be shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "The token keeps its name, role and bots. The previous secret stays valid for \
    --overlap; replace it everywhere before then. Restart a worker to give it the new secret.

Examples:
  arbiter token rotate cellar
  arbiter token rotate 3 --overlap 7d
  arbiter token rotate 3 --overlap 0s"
)]
struct Rotate {
    /// The number of the token (see `arbiter token list`) or its name.
    #[arg(value_name = "ID|NAME")]
    id_or_name: String,
    /// How long the previous secret stays valid, at most 30d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    overlap: Duration,
    #[command(flatten)]
    response: ResponseArgs,
}

impl Rotate {
    fn run(self) -> Result<(), Failure> {
        let overlap_us = i64::try_from(self.overlap.whole_microseconds()).unwrap_or(i64::MAX);
        let request = RotateTokenRequest { token: self.id_or_name, overlap_us };
        let rotated = self.response.client.send(request)?;
        let RotateTokenResponse { id, role, name, token, previous_valid_until_us } = &rotated;
        let object = || {
            let until = json!({ "former_until": time_json(*previous_valid_until_us) });
            merge(fields!(rotated; id, role, name, token), until)
        };
        self.response.print(object, |out| {
            let validity = match *previous_valid_until_us {
                0 => "the previous secret is no longer valid".to_owned(),
                until => format!("the previous secret is valid until {}", moment(until)),
            };
            eprint_line(&printable(&format!(
                "token {id} for {role} {name}; it cannot be shown again; {validity}"
            )));
            out.line(token)
        })
    }
}

/// Revoke a token.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter token revoke ada
  arbiter token revoke 3")]
struct Revoke {
    /// The number of the token (see `arbiter token list`) or its name.
    #[arg(value_name = "ID|NAME")]
    id_or_name: String,
    #[command(flatten)]
    client: Client,
}

impl Revoke {
    fn run(self) -> Result<(), Failure> {
        let token = self.id_or_name;
        let id = token.parse().unwrap_or_default();
        let revoked = self.client.send(RevokeTokenRequest { id, token: token.clone() })?;
        match revoked {
            // A coordinator of an earlier version does not say more.
            RevokeTokenResponse { id: 0, .. } => print_line(&format!("token {token} was revoked")),
            RevokeTokenResponse { id, role, name } => {
                print_line(&format!("token {id} of {role} {name} was revoked"))
            }
        }
    }
}

/// List tokens, without their secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter token list
  arbiter token list ada
  arbiter token list --role player --json")]
struct List {
    /// Only the token of this number, and tokens of this name.
    #[arg(value_name = "ID|NAME")]
    id_or_name: Option<String>,
    /// Only tokens of this role.
    #[arg(long, value_parser = role())]
    role: Option<Role>,
    /// Print one JSON object per token.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let role = self.role.map(|role| role.to_string()).unwrap_or_default();
        let token = self.id_or_name.unwrap_or_default();
        let tokens = self.client.send(ListTokensRequest { role, token })?.tokens;
        let header = ["id", "role", "name", "handle", "created", "last used", "expires", ""];
        let table = Columns::new(header, &[1, 2, 3, 4, 5, 6, 7]);
        print(|out| out.list(self.json, &tokens, object, table, row))
    }
}

fn row(token: &Token) -> Vec<String> {
    let time = |micros| if micros == 0 { "-".to_owned() } else { moment(micros) };
    let times = [token.created_at_us, token.last_used_at_us, token.expires_at_us].map(time);
    let identity =
        [token.id.to_string(), token.role.clone(), token.name.clone(), token.handle.clone()];
    let state = state(token, micros(OffsetDateTime::now_utc()));
    identity.into_iter().chain(times).chain([state]).collect()
}

/// Whether a token is revoked, expired or rotated.
fn state(token: &Token, now: i64) -> String {
    match token {
        Token { revoked: true, .. } => "revoked".to_owned(),
        Token { expires_at_us, .. } if *expires_at_us != 0 && *expires_at_us <= now => {
            "expired".to_owned()
        }
        Token { previous_valid_until_us: 0, .. } => String::new(),
        Token { previous_valid_until_us, .. } => {
            format!("previous secret valid until {}", moment(*previous_valid_until_us))
        }
    }
}

/// A time as JSON; null for 0.
fn time_json(micros: i64) -> Value {
    if micros == 0 { Value::Null } else { moment_json(micros) }
}

fn object(token: &Token) -> Value {
    let times = json!({
        "handle": non_empty(&token.handle),
        "created": time_json(token.created_at_us),
        "used": time_json(token.last_used_at_us),
        "expires": time_json(token.expires_at_us),
        "former_until": time_json(token.previous_valid_until_us),
    });
    merge(fields!(token; id, role, name, revoked), times)
}
