//! The replay viewer: the player and the step that it shows.
//!
//! A server renders it for each step, so it works without scripts: its links open other steps. The
//! script [`SCRIPT`] plays the replay and steps through it without loading pages. It gets the steps
//! as chunks ([`crate::render_chunks()`]), from a server or from the page itself.

use std::fmt::Write as _;

use arbiter_games::EntrantName;
use maud::{Markup, PreEscaped, Render, html};

use crate::chunk::STEPS_PER_CHUNK;
use crate::render::who;
use crate::steps_builder::{ForfeitedSeat, Overview};

/// The script of the viewer.
pub const SCRIPT: &str = include_str!("viewer.js");

/// The style sheet of the viewer and of the pictures. The page sets their colours, for the light
/// and the dark theme, in the variables `--seat1` to `--seat4`, `--ink`, `--paper`, `--faint` and
/// `--wood`.
pub const STYLE: &str = concat!(include_str!("style.css"), include_str!("viewer.css"));

/// The speeds, in steps a second.
const SPEEDS: [usize; 8] = [1, 2, 5, 10, 25, 50, 100, 200];
/// The speed at the beginning.
const FIRST_SPEED: usize = 2;
/// How long a replay that plays by itself takes, in seconds, if a speed allows it.
const AUTOPLAY_SECONDS: usize = 90;
/// With more chapters, the slider has no marks.
const MAX_MARKS: usize = 200;
/// The keys of the viewer and what they do.
const KEYS: [(&str, &str); 6] = [
    ("← →", "previous or next step"),
    ("Page up, Page down, or Shift with ← →", "previous or next chapter"),
    ("Home", "first step"),
    ("End", "last step"),
    ("Space", "play or pause"),
    ("?", "show or hide this list"),
];

/// The viewer of a replay at a step.
#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    /// The whole replay.
    pub overview: &'a Overview,
    /// The number of the step to show. It may be more than the last one.
    pub step: usize,
    /// The step, or the last one if there is no such step.
    pub shown: Option<&'a PreEscaped<String>>,
    /// Where the steps come from.
    pub source: StepSource<'a>,
    /// How it plays by itself, if it does.
    pub autoplay: Option<Autoplay<'a>>,
}

/// Where a viewer gets its steps.
#[derive(Clone, Copy, Debug)]
pub enum StepSource<'a> {
    /// A server.
    Server {
        /// The URL of the page of the replay: links to steps lead there. Empty for the page itself.
        page: &'a str,
        /// The URL of the chunks; the number of a chunk follows it.
        chunks: &'a str,
    },
    /// The page, which contains all chunks.
    Page,
}

/// A replay that plays by itself.
#[derive(Clone, Copy, Debug)]
pub struct Autoplay<'a> {
    /// The page to open after the last step.
    pub next: &'a str,
}

/// Chapters whose names begin with the same name.
#[derive(Debug)]
struct ChapterGroup<'a> {
    /// This name; `None` for chapters that are not divided.
    name: Option<&'a str>,
    /// The rest of each name, and the first step.
    parts: Vec<(&'a str, usize)>,
}

impl Render for Viewer<'_> {
    fn render(&self) -> Markup {
        let Overview { names, total, forfeits, stderr, .. } = self.overview;
        let chunks = match self.source {
            StepSource::Server { chunks, .. } => Some(chunks),
            StepSource::Page => None,
        };
        html! {
            section #replay data-total=(total) data-chunk=(STEPS_PER_CHUNK) data-chunks=[chunks]
                data-page=(self.page()) data-next=[self.autoplay.map(|autoplay| autoplay.next)] {
                @for forfeit in forfeits { (self.forfeit(*forfeit, names)) }
                (self.player())
                div.step-view aria-live="polite" {
                    @if self.step > self.last() {
                        p { "There is no step " (self.step) ". The last step is " (self.last()) "." }
                    }
                    @if let Some(step) = self.shown { (step) }
                }
                (self.chapter_list())
                (keys())
                @for (name, stderr) in names.iter().zip(stderr) {
                    @if let Some(stderr) = stderr {
                        details {
                            summary { "Standard error of " (name) }
                            @if stderr.dropped > 0 { p { "The record does not have its first " (stderr.dropped) " bytes." } }
                            pre { (stderr.text) }
                        }
                    }
                }
            }
        }
    }
}

impl Viewer<'_> {
    /// The number of the last step.
    fn last(&self) -> usize {
        self.overview.total.saturating_sub(1)
    }

    /// The number of the shown step, or of the last one.
    fn current(&self) -> usize {
        self.step.min(self.last())
    }

    /// The buttons, the slider and the choices.
    fn player(&self) -> Markup {
        let last = self.last();
        let current = self.current();
        let autoplay_speed = |_| {
            let fast_enough = |speed: &usize| speed * AUTOPLAY_SECONDS >= last;
            SPEEDS.into_iter().find(fast_enough).unwrap_or(SPEEDS[SPEEDS.len() - 1])
        };
        let speed = self.autoplay.map_or(FIRST_SPEED, autoplay_speed);
        let has_chapters = self.overview.chapters.len() > 1;
        let is_embedded = !self.page().is_empty();
        html! {
            nav.player aria-label="Steps" {
                div.buttons {
                    (self.button("first", 0, "|◀", "First step"))
                    @if has_chapters { (self.button("back", self.chapter_before(), "◀◀", "Previous chapter")) }
                    (self.button("previous", current.saturating_sub(1), "◀", "Previous step"))
                    button type="button" data-play hidden { "Play" }
                    (self.button("next", (current + 1).min(last), "▶", "Next step"))
                    @if has_chapters { (self.button("on", self.chapter_after(), "▶▶", "Next chapter")) }
                    (self.button("last", last, "▶|", "Last step"))
                }
                div.slider hidden {
                    input type="range" min="0" max=(last) value=(current) aria-label="Step";
                    (self.marks())
                }
                output { "Step " (current) " of " (last) }
                label.speed hidden {
                    "Steps per second "
                    select { @for option in SPEEDS { option selected[option == speed] { (option) } } }
                }
                @if has_chapters { (self.chapter_choice()) }
                a.link data-link href={ (self.page()) (self.address(current)) } target=[is_embedded.then_some("_blank")]
                    rel=[is_embedded.then_some("noopener")] { "Link to this step" }
            }
        }
    }

    /// The URL of the page of the replay: empty for this page.
    fn page(&self) -> &str {
        match self.source {
            StepSource::Server { page, .. } => page,
            StepSource::Page => "",
        }
    }

    /// The URL of a step in this viewer, relative to its page. An embedded viewer stays embedded.
    fn address(&self, step: usize) -> String {
        match self.source {
            StepSource::Server { .. } => format!("?step={step}#replay"),
            StepSource::Page => format!("#step={step}"),
        }
    }

    /// A link to a step in this viewer. The script handles clicks on it.
    fn jump(&self, step: usize, text: &str) -> Markup {
        html! { a href=(self.address(step)) data-step=(step) { (text) } }
    }

    /// A button of the player: `role` says the script what it does.
    fn button(&self, role: &str, step: usize, sign: &str, label: &str) -> Markup {
        html! {
            a href=(self.address(step)) data-step=(step) data-to=(role) aria-label=(label) title=(label) { (sign) }
        }
    }

    /// The beginning of the present chapter, or of the one before if it begins here.
    fn chapter_before(&self) -> usize {
        let current = self.current();
        let firsts = self.overview.chapters.iter().map(|(_, first)| *first);
        firsts.take_while(|first| *first < current).last().unwrap_or(0)
    }

    /// The beginning of the next chapter, or the last step.
    fn chapter_after(&self) -> usize {
        let current = self.current();
        let mut firsts = self.overview.chapters.iter().map(|(_, first)| *first);
        firsts.find(|first| *first > current).unwrap_or(self.last())
    }

    /// The chapters in the groups that their names begin with, in order.
    fn chapter_groups(&self) -> Vec<ChapterGroup<'_>> {
        let mut groups: Vec<ChapterGroup<'_>> = Vec::new();
        for (name, first) in &self.overview.chapters {
            let (group, part) = match name.split_once(", ") {
                Some((group, part)) => (Some(group), part),
                None => (None, name.as_str()),
            };
            match groups.last_mut() {
                Some(last) if last.name == group => last.parts.push((part, *first)),
                _ => groups.push(ChapterGroup { name: group, parts: vec![(part, *first)] }),
            }
        }
        groups
    }

    fn chapter_choice(&self) -> Markup {
        let current = self.current();
        let chapters = &self.overview.chapters;
        let present = chapters.iter().rev().find(|(_, first)| *first <= current);
        let present = present.map(|(_, first)| *first);
        let option = |(name, first): &(&str, usize)| {
            html! { option value=(first) selected[present == Some(*first)] { (name) } }
        };
        html! {
            label.chapter hidden {
                "Chapter "
                select {
                    @for ChapterGroup { name, parts } in self.chapter_groups() {
                        @match name {
                            Some(group) => {
                                optgroup label=(group) { @for part in &parts { (option(part)) } }
                            }
                            None => { @for part in &parts { (option(part)) } }
                        }
                    }
                }
            }
        }
    }

    /// The chapters as links, for browsers without scripts.
    fn chapter_list(&self) -> Markup {
        html! {
            @if self.overview.chapters.len() > 1 && !matches!(self.source, StepSource::Page) {
                noscript {
                    details.chapters {
                        summary { "Chapters" }
                        ul {
                            @for (name, first) in &self.overview.chapters {
                                li { (self.jump(*first, name)) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Marks below the slider where chapters begin and seats forfeit.
    fn marks(&self) -> Markup {
        let Overview { chapters, forfeits, .. } = self.overview;
        let line = |mut path: String, step: usize| {
            write!(path, "M{step},0v1").expect("a string takes every text");
            path
        };
        let firsts = chapters.iter().map(|(_, first)| *first).filter(|first| *first > 0);
        let chapter_path = firsts.fold(String::new(), line);
        let forfeit_path = forfeits.iter().map(|forfeit| forfeit.step).fold(String::new(), line);
        let view = format!("0 0 {} 1", self.last().max(1));
        html! {
            svg.marks viewBox=(view) preserveAspectRatio="none" aria-hidden="true" {
                @if chapters.len() <= MAX_MARKS { path d=(chapter_path) {} }
                path.forfeits d=(forfeit_path) {}
            }
        }
    }

    /// A line that says who forfeited, and leads there.
    fn forfeit(&self, forfeit: ForfeitedSeat, names: &[EntrantName]) -> Markup {
        let ForfeitedSeat { seat, kind, step } = forfeit;
        html! {
            p.forfeited {
                (who(seat, names)) " " strong.forfeit { "forfeits – " (kind) } ", in step " (step) ". "
                (self.jump(step, "Go to the forfeit"))
            }
        }
    }
}

/// The list of keyboard shortcuts. The script shows it.
fn keys() -> Markup {
    html! {
        details.keys hidden {
            summary { "Keyboard shortcuts" }
            dl { @for (key, effect) in KEYS { dt { kbd { (key) } } dd { (effect) } } }
        }
    }
}
