//! `arbiter replay FILE`: a record in the viewer, or as one page.

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use arbiter_coordinator::web::serve_routes;
use arbiter_games::Games;
use arbiter_replay::{Difference, ShownNames};
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use clap::Args;

use super::signals::ShutdownSignals;
use crate::failure::{Failure, without_temporary_path};
use crate::listen::listen;
use crate::output::{eprint_line, print_line};
use crate::play::record_file;
use crate::playground::web::is_address;
use crate::replay_page::replay_page;

/// Watch a recorded match in a browser, or write it as one page.
#[derive(Debug, Args)]
#[command(
    after_help = "The record is replayed through the rules first; exit code 1 and the first \
    difference if it is wrong. Rules of a game package do not run: the viewer shows the pictures \
    that the record contains.

The viewer is at the printed address until Ctrl-C. A page of --html contains everything: send it, \
    put it on any site, or open it without a network.

Examples:
  arbiter replay records/gomoku-1f2e3d4c-000001.jsonl
  arbiter replay match-finals-7.jsonl.zst --http 127.0.0.1:8000
  arbiter replay records/gomoku-1f2e3d4c-000001.jsonl --html final.html"
)]
pub(super) struct Replay {
    /// A record (*.jsonl), as it is or compressed (*.jsonl.zst).
    #[arg(value_name = "FILE")]
    record: PathBuf,
    /// Write one page that needs no server, and serve nothing.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Replace an existing page.
    #[arg(long, requires = "html")]
    force: bool,
    /// The address of the viewer; by default a free port on 127.0.0.1.
    #[arg(long, value_name = "ADDR", conflicts_with = "html")]
    http: Option<SocketAddr>,
}

impl Replay {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let out = self.html.as_deref();
        if let Some(out) = out {
            check_output(out, self.force)?;
        }
        let page = page(games, &self.record)?;
        match out {
            Some(out) => save(&page, out),
            None => serve(page, self.http.unwrap_or((Ipv4Addr::LOCALHOST, 0).into())),
        }
    }
}

/// The page of a record.
fn page(games: &Games, path: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    if path.is_dir() {
        let path = path.display();
        let cause = format!("{path} is a directory; name one of its records");
        return Err(Failure::Usage(cause));
    }
    let text = record_file::open(path).map_err(failed)?;
    let result = replay_page(games, text, None, None, &ShownNames::new());
    let path = path.display();
    result.map_err(|difference| match difference {
        Difference::Line { line: 1, problem } => Failure::Usage(format!(
            "{path}: not a record that can be replayed: {problem}; records are files that arbiter \
             play --record and arbiter match --record write"
        )),
        difference => Failure::Negative(format!("{path} differs from the rules: {difference}")),
    })
}

/// Refuses a path that no page can be written to.
fn check_output(out: &Path, force: bool) -> Result<(), Failure> {
    let shown = out.display();
    let parent = folder_of(out);
    let cause = if out.is_dir() {
        let page = out.join("replay.html");
        format!("{shown} is a directory; name a file in it, such as {}", page.display())
    } else if !parent.exists() {
        let folder = parent.display();
        format!("cannot write {shown}: there is no directory {folder}; create it first")
    } else if !force && fs::symlink_metadata(out).is_ok() {
        format!("{shown} already exists; replace it with --force")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(cause))
}

/// The directory that a file is in.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the page to a file, which appears only when it is complete.
fn save(page: &str, out: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let cause = without_temporary_path(&error);
        Failure::usage(format!("cannot write {}: {cause}", out.display()))
    };
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let temporary = tempfile::Builder::new().permissions(mode).tempfile_in(folder_of(out));
    let mut file = temporary.map_err(failed)?;
    file.write_all(page.as_bytes()).map_err(failed)?;
    file.persist(out).map(drop).map_err(|error| failed(error.error))
}

/// Serves the page until Ctrl-C.
fn serve(page: String, address: SocketAddr) -> Result<(), Failure> {
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let mut signals = ShutdownSignals::watch()?;
        let listener = listen(address, "--http").await?;
        let address = listener.local_addr().map_err(Failure::usage)?;
        let show = move |headers: HeaderMap| async move { respond(&headers, page) };
        let routes = Router::new().route("/", get(show));
        print_line(&format!("http://{address}/"))?;
        eprint_line("open this address in a browser; Ctrl-C ends the viewer");
        tokio::select! {
            () = signals.next() => Ok(()),
            result = serve_routes(listener, routes) => {
                result.map_err(|error| Failure::Negative(format!("cannot serve the page: {error}")))
            }
        }
    })
}

/// The response to a request for the page. The pages of other sites cannot read it: a host name of
/// theirs that leads to this address is refused.
fn respond(headers: &HeaderMap, page: String) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_address) {
        return (StatusCode::FORBIDDEN, "open the printed address\n").into_response();
    }
    ([(header::X_CONTENT_TYPE_OPTIONS, "nosniff")], Html(page)).into_response()
}
