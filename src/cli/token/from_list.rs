//! `arbiter token create --from FILE`: a token for each name of a list, in one step.
//!
//! The output files are prepared before the tokens are created, because their secrets cannot be
//! shown again.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use arbiter_coordinator::access::Role;
use arbiter_coordinator::access::name_list::NameList;
use arbiter_coordinator::web::invitations::{self, Invitations};
use arbiter_proto::v1::CreateTokenResponse;
use clap::Args;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::cli::client::Client;
use crate::failure::{Failure, without_temporary_path};
use crate::output::{Output, eprint_line, fields, merge, print};

/// The options for many tokens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many tokens")]
pub(super) struct FromList {
    /// Create a token for each name in this file: one name a line, or comma-separated values with
    /// a column `name`. `-` reads standard input. Either all tokens are created or none.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "database_url"])]
    pub(super) from: Option<PathBuf>,
    /// Write the table of --from with the tokens to this file, readable only by you.
    #[arg(long, value_name = "OUT", requires = "from")]
    csv: Option<PathBuf>,
    /// Write a page to print to this file: a card with the token for each player, six a page.
    #[arg(long, value_name = "OUT", requires_all = ["from", "site"])]
    invitations: Option<PathBuf>,
    /// The address of the web pages, for the login links on the cards and in the table.
    #[arg(long, value_name = "URL", requires = "from", value_parser = site)]
    site: Option<String>,
    /// The title on the cards.
    #[arg(long, value_name = "TEXT", requires = "invitations", default_value = "")]
    title: String,
}

/// Parses the address of a site.
fn site(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['#', '?', ' ']) => Ok(text.to_owned()),
        _ => Err("write the address of the web pages, such as https://arbiter.example".to_owned()),
    }
}

impl FromList {
    /// Creates the tokens of the names in `from`.
    pub(super) fn run(
        &self,
        from: &Path,
        role: Role,
        expires_at_us: i64,
        json: bool,
        client: &Client,
    ) -> Result<(), Failure> {
        let source = source(from);
        let list = read(from, &source)?;
        let csv = self.csv.as_deref().map(SecretFile::prepare).transpose()?;
        let page = self.invitations.as_deref().map(SecretFile::prepare).transpose()?;
        let request = list.request(role, expires_at_us);
        // The rest of the request is checked, so a wrong request has wrong names.
        let in_list = |failure: Failure| match failure {
            Failure::Usage(_) => failure.with_context(&format!("{source}: no token was created")),
            _ => failure,
        };
        let tokens = client.run(async |server| server.send(request).await.map_err(in_list))?.tokens;
        eprint_line(&format!(
            "{} created; they cannot be shown again",
            if tokens.len() == 1 {
                "1 token".to_owned()
            } else {
                format!("{} tokens", tokens.len())
            }
        ));
        let has_files = csv.is_some() || page.is_some();
        let write_files = || -> Result<(), Failure> {
            if let Some(file) = csv {
                file.write(&self.table(&list, &tokens)?)?;
            }
            if let Some(file) = page {
                file.write(&self.page(&tokens))?;
            }
            Ok(())
        };
        let written = write_files();
        if json || !has_files || written.is_err() {
            print(|out| self.show(out, json, &tokens))?;
        }
        written
    }

    /// Prints the tokens.
    fn show(
        &self,
        out: &mut Output,
        json: bool,
        tokens: &[CreateTokenResponse],
    ) -> Result<(), Failure> {
        for created in tokens {
            if json {
                let link = json!({ "link": self.link(created) });
                out.json(&merge(fields!(created; id, name, token), link))?;
            } else {
                out.line(&format!("{}\t{}", created.name, created.token))?;
            }
        }
        Ok(())
    }

    fn link(&self, created: &CreateTokenResponse) -> Option<String> {
        self.site.as_ref().map(|site| invitations::login_link(site, &created.token))
    }

    /// The list with the tokens, and their login links if the site is known.
    fn table(&self, list: &NameList, tokens: &[CreateTokenResponse]) -> Result<String, Failure> {
        let values = |created: &CreateTokenResponse| {
            [Some(created.token.clone()), self.link(created)].into_iter().flatten().collect()
        };
        let values: Vec<Vec<String>> = tokens.iter().map(values).collect();
        let headings = if self.site.is_some() { &["token", "link"][..] } else { &["token"] };
        list.csv(headings, &values).map_err(|error| Failure::Negative(error.to_string()))
    }

    /// The page with the cards.
    fn page(&self, tokens: &[CreateTokenResponse]) -> String {
        let players: Vec<_> =
            tokens.iter().map(|created| (&created.name[..], &created.token[..])).collect();
        let site = self.site.as_deref().unwrap_or_default();
        invitations::document(Invitations { title: &self.title, site, players: &players })
    }
}

/// Whether a path means standard input.
fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The file of a list, for error messages.
fn source(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Reads a list of names.
fn read(path: &Path, source: &str) -> Result<NameList, Failure> {
    let failed = |cause: &dyn std::fmt::Display| Failure::usage(format!("{source}: {cause}"));
    let mut bytes = Vec::new();
    let read = if is_stdin(path) {
        io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        fs::read(path).map(|contents| bytes = contents)
    };
    read.map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| failed(&"it is not UTF-8 text: save it as UTF-8"))?;
    NameList::read(&text).map_err(|error| failed(&error))
}

/// A new file that only its owner can read. It appears when it is complete.
#[derive(Debug)]
struct SecretFile<'a> {
    path: &'a Path,
    /// Readable only by its owner.
    temporary: NamedTempFile,
}

impl<'a> SecretFile<'a> {
    /// # Errors
    /// If the file exists or cannot be created.
    fn prepare(path: &'a Path) -> Result<Self, Failure> {
        let shown = path.display();
        if path.exists() {
            let error = format!("{shown} exists; choose another name, or remove it");
            return Err(Failure::usage(error));
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let temporary = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")));
        let temporary = temporary.map_err(|error| {
            Failure::usage(format!("{shown}: {}", without_temporary_path(&error)))
        })?;
        Ok(Self { path, temporary })
    }

    fn write(mut self, text: &str) -> Result<(), Failure> {
        let written = self.temporary.write_all(text.as_bytes());
        let persist = || self.temporary.persist_noclobber(self.path).map_err(|error| error.error);
        written.and_then(|()| persist().map(drop)).map_err(|error| {
            let path = self.path.display();
            let cause = without_temporary_path(&error);
            let error = format!("{path}: {cause}; the tokens were created and are printed above");
            Failure::Negative(error)
        })
    }
}
