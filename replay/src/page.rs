//! A replay as one page: a file that needs no server and no network.
//!
//! The page contains its style, its script and all steps. Its content security policy forbids every
//! request. The policy allows only elements with a nonce to act. The nonce is the hash of all other
//! contents, so no text of a record can contain it.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use arbiter_games::picture::name;
use arbiter_games::{EntrantName, Games, Seat, SeatResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chunk::{ChunkEncoder, STEPS_PER_CHUNK};
use crate::lines::Difference;
use crate::render::{score_cells, score_columns, score_heads, who};
use crate::steps::visit_steps;
use crate::steps_builder::{Overview, ShownNames, Step};
use crate::viewer::{SCRIPT, StepSource, Viewer};
use crate::visible_text::without_bidi_controls;

/// What a page shows besides the replay.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions<'a> {
    /// The heading of the page, such as the name of the match. Without it, the heading names the
    /// bots.
    pub title: Option<&'a str>,
    /// The names of the bots to show instead of those in the record.
    pub names: &'a ShownNames,
    /// The style sheet of the pages and of the viewer. It must not load anything.
    pub style: &'a str,
    /// A link at the top of the page, as text and URL, such as to the list of matches.
    pub back: Option<(&'a str, &'a str)>,
}

/// A whole HTML document with the replay of a record.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn replay_page(
    games: &Games,
    record: impl BufRead,
    options: PageOptions<'_>,
) -> Result<String, Difference> {
    let mut steps = PackedSteps::default();
    let mut failure = None;
    let overview = visit_steps(games, record, (0..usize::MAX, options.names), |names, step| {
        let markup = step.render(names);
        if let Err(error) = steps.add(step, markup) {
            failure = Some(error);
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    steps.end_chunk()?;
    Ok(steps.page(&overview, options))
}

/// All steps of a replay.
#[derive(Debug, Default)]
struct PackedSteps {
    encoder: ChunkEncoder,
    /// The complete chunks as elements of the page.
    chunks: String,
    count: usize,
    first: Option<PreEscaped<String>>,
    standings: Vec<SeatResult>,
}

impl PackedSteps {
    fn add(&mut self, step: Step, markup: Markup) -> io::Result<()> {
        self.encoder.push(markup.0.clone());
        self.first.get_or_insert(markup);
        self.standings = step.standings.unwrap_or_default();
        if self.encoder.steps() == STEPS_PER_CHUNK { self.end_chunk() } else { Ok(()) }
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        if self.encoder.steps() == 0 {
            return Ok(());
        }
        let chunk = BASE64.encode(self.encoder.finish()?);
        let number = self.count;
        self.count += 1;
        writeln!(self.chunks, "<script type=\"text/plain\" id=\"chunk-{number}\">{chunk}</script>")
            .map_err(io::Error::other)
    }

    fn page(&self, overview: &Overview, options: PageOptions<'_>) -> String {
        let PageOptions { title, style, back, .. } = options;
        let names: Vec<_> = overview.names.iter().map(EntrantName::as_str).collect();
        let names = names.join(", ");
        let title = title.unwrap_or(&names);
        let shown = self.first.as_ref();
        let source = StepSource::Page;
        let viewer = Viewer { overview, step: 0, shown, source, autoplay: None };
        let body = html! {
            @if let Some((text, address)) = back { p { a href=(address) { (text) } } }
            h1 { (title) }
            (result(&self.standings, overview))
            noscript { p { "This page shows the first step only, because scripts are off." } }
            (viewer)
        };
        let body = PreEscaped(without_bidi_controls(body.into_string()));
        let nonce = blake3::hash([title, &body.0, &self.chunks].concat().as_bytes()).to_string();
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
             img-src data:; base-uri 'none'; form-action 'none'"
        );
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " – Arbiter" }
                    link rel="icon" href="data:,";
                    style nonce=(nonce) { (PreEscaped(style)) }
                }
                body {
                    main { (body) }
                    (PreEscaped(&self.chunks))
                    script nonce=(nonce) { (PreEscaped(SCRIPT)) }
                }
            }
        };
        document.into_string()
    }
}

/// The seats with their scores and forfeits.
fn result(standings: &[SeatResult], overview: &Overview) -> Markup {
    let names = &overview.names;
    let columns = score_columns(&overview.columns, standings);
    let has_forfeits = standings.iter().any(|standing| standing.forfeit.is_some());
    html! {
        table.scores {
            thead {
                tr { th { "Bot" } (score_heads(columns)) @if has_forfeits { th { "Forfeit" } } }
            }
            tbody {
                @for (seat, standing) in Seat::all(standings.len()).zip(standings) {
                    tr {
                        td aria-label=(name(names, seat)) { (who(seat, names)) }
                        (score_cells(standing, columns))
                        @if has_forfeits {
                            td { @if let Some(kind) = standing.forfeit { em.forfeit { (kind) } } }
                        }
                    }
                }
            }
        }
    }
}
