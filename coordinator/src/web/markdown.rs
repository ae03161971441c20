//! Renders Markdown that is not trusted, such as the text of a game package.
//!
//! HTML in it is shown as text. Links lead to other sites, marked as untrusted (`nofollow`), to
//! pages of this server, or to a heading of the text; all others, and all images, are replaced by
//! their texts. So the result has no scripts and no styles. A link to a page of this server changes
//! nothing: changes need a form with the token of the session.

use std::collections::HashSet;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{
    Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html::push_html,
};

/// Elements that are nested more deeply are left out, with their texts kept.
const MAX_DEPTH: usize = 24;

/// A wide table scrolls.
const TABLE_BEGIN: &str = "<div class=\"scrollable\" role=\"group\" tabindex=\"0\" \
                           aria-label=\"Table\">";
/// Wide code scrolls, too: a wrapped line would look like two lines.
const CODE_BEGIN: &str = "<div class=\"scrollable\" role=\"group\" tabindex=\"0\" \
                          aria-label=\"Code\">";
const SCROLLABLE_END: &str = "</div>\n";

/// Renders a text. Its headings are one level lower, below the heading of the page. Their ids begin
/// with `prefix`, so that they differ from those of the page and of other texts on it.
pub(super) fn render(text: &str, prefix: &str) -> Markup {
    render_with_paths(text, prefix, &|path| Some(path.to_owned()))
}

/// Like [`render`] for a page that is not on this server. `page` gives the link to write for a path
/// of this server. If there is none, the text of the link remains.
pub(super) fn render_with_paths(
    text: &str,
    prefix: &str,
    page: &dyn Fn(&str) -> Option<String>,
) -> Markup {
    let mut filter = Filter {
        prefix,
        page,
        events: Vec::new(),
        open: Vec::new(),
        heading: None,
        ids: HashSet::new(),
    };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        filter.add(event);
    }
    let mut html = String::new();
    push_html(&mut html, filter.events.into_iter());
    PreEscaped(html)
}

/// The events of a text, made harmless.
struct Filter<'a> {
    /// The beginning of the ids of headings.
    prefix: &'a str,
    /// The link to write for a path of this server.
    page: &'a dyn Fn(&str) -> Option<String>,
    events: Vec<Event<'a>>,
    /// Whether each open element is kept.
    open: Vec<bool>,
    /// The index of the open heading, and its text.
    heading: Option<(usize, String)>,
    ids: HashSet<String>,
}

impl<'a> Filter<'a> {
    fn add(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Html(text) | Event::InlineHtml(text) => self.text(Event::Text(text)),
            other => self.text(other),
        }
    }

    fn text(&mut self, event: Event<'a>) {
        if let Some((_, heading)) = &mut self.heading
            && let Event::Text(text) | Event::Code(text) = &event
        {
            heading.push_str(text);
        }
        self.events.push(event);
    }

    fn start(&mut self, tag: Tag<'a>) {
        let tag =
            Some(tag).filter(|_| self.open.len() < MAX_DEPTH).and_then(|tag| self.harmless(tag));
        self.open.push(tag.is_some());
        match tag {
            Some(Tag::Heading { .. }) => self.heading = Some((self.events.len(), String::new())),
            Some(Tag::Table(_)) => self.events.push(Event::Html(CowStr::Borrowed(TABLE_BEGIN))),
            Some(Tag::CodeBlock(_)) => self.events.push(Event::Html(CowStr::Borrowed(CODE_BEGIN))),
            _ => {}
        }
        self.events.extend(tag.map(|tag| match tag {
            Tag::Link { dest_url, .. } => Event::InlineHtml(link(&dest_url).into()),
            tag => Event::Start(tag),
        }));
    }

    fn end(&mut self, end: TagEnd) {
        if self.open.pop() != Some(true) {
            return;
        }
        let end = match end {
            TagEnd::HtmlBlock => TagEnd::Paragraph,
            TagEnd::Heading(level) => TagEnd::Heading(lower(level)),
            end => end,
        };
        self.events.push(Event::End(end));
        match end {
            TagEnd::Table | TagEnd::CodeBlock => {
                self.events.push(Event::Html(CowStr::Borrowed(SCROLLABLE_END)));
            }
            TagEnd::Heading(_) => self.name_heading(),
            _ => {}
        }
    }

    /// The harmless form of an element; `None` if only its text remains.
    fn harmless(&self, tag: Tag<'a>) -> Option<Tag<'a>> {
        match tag {
            Tag::Link { link_type, dest_url, id, .. } => {
                let dest_url = self.link_target(&dest_url)?;
                Some(Tag::Link {
                    link_type,
                    dest_url: dest_url.into(),
                    title: CowStr::Borrowed(""),
                    id,
                })
            }
            Tag::Image { .. } => None,
            Tag::HtmlBlock => Some(Tag::Paragraph),
            Tag::Heading { level, .. } => Some(Tag::Heading {
                level: lower(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            // The policy of pages allows no `style`, which alignments would be.
            Tag::Table(columns) => Some(Tag::Table(vec![Alignment::None; columns.len()])),
            tag => Some(tag),
        }
    }

    /// Where a link may lead: to another site, to a path of this server, or to a heading of the
    /// text.
    fn link_target(&self, target: &str) -> Option<String> {
        if let Some(name) = target.strip_prefix('#') {
            return Some(format!("#{}{}", self.prefix, slug(name)));
        }
        if is_site(target) {
            return Some(target.to_owned());
        }
        // Browsers take `//` and `/\` for the beginning of another site.
        let is_path = target.starts_with('/') && !target.starts_with("//");
        let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if is_path && is_plain { (self.page)(target) } else { None }
    }

    /// Gives the heading that ended an id, unless an earlier one has it.
    fn name_heading(&mut self) {
        let Some((index, text)) = self.heading.take() else { return };
        let name = slug(&text);
        if let Some(Event::Start(Tag::Heading { id, .. })) = self.events.get_mut(index)
            && self.ids.insert(name.clone())
        {
            *id = Some(CowStr::from(format!("{}{name}", self.prefix)));
        }
    }
}

/// Whether a link leads to a site by its whole address.
fn is_site(target: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        target.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    })
}

/// The first tag of a link.
fn link(target: &str) -> String {
    let rel = is_site(target).then_some("nofollow noopener");
    let element = html! { a href=(target) rel=[rel] {} }.into_string();
    element.trim_end_matches("</a>").to_owned()
}

/// The name of a heading in links: its letters and digits in lower case, and hyphens.
fn slug(text: &str) -> String {
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c => Some(c).filter(|c| c.is_alphanumeric() || "-_".contains(*c)),
    };
    text.to_lowercase().chars().filter_map(letter).collect()
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that try to act on the page, and what must not be in the result.
    const HOSTILE: [(&str, &str); 10] = [
        ("<script>alert(1)</script>", "<script"),
        ("a <b onclick=alert(1)>b</b>", "<b"),
        ("<!--\n\n<img src=x onerror=alert(1)>", "<img"),
        ("[a](javascript:alert(1))", "href"),
        ("[a](JaVaScRiPt:alert(1)) <javascript:alert(1)>", "href"),
        ("[a](data:text/html,x) [b](//evil.example) [c](/\\\\evil.example) [d](../x)", "href"),
        ("[a]( java&#x0A;script:alert(1))", "href"),
        ("![a](https://evil.example/x.png)", "<img"),
        ("```\"><script>\nx\n```", "<script"),
        ("# a\" onclick=\"alert(1)", "id=\"guide-a\""),
    ];

    #[test]
    fn nothing_in_a_text_acts_on_the_page() {
        for (text, forbidden) in HOSTILE {
            let html = render(text, "guide-").into_string();
            assert!(!html.contains(forbidden), "{text}: {html}");
        }
        let doctype = "<!DOCTYPE x [<!ENTITY a \"b\">]>&a;";
        let html = render(doctype, "guide-").into_string();
        assert!(html.contains("&lt;!DOCTYPE") && html.contains("&amp;a;"), "{html}");
    }

    #[test]
    fn links_lead_to_other_sites_to_paths_and_to_headings() {
        let text = "## Over HTTP\n[a](#over-http) [b](https://example.org/?a=1&b=2) [c](/t/cup)\n";
        let html = render(text, "guide-").into_string();
        assert!(html.contains("<h3 id=\"guide-over-http\">Over HTTP</h3>"), "{html}");
        assert!(html.contains("<a href=\"#guide-over-http\">a</a>"), "{html}");
        assert!(html.contains("<a href=\"/t/cup\">c</a>"), "{html}");
        assert!(
            html.contains(
                "<a href=\"https://example.org/?a=1&amp;b=2\" rel=\"nofollow noopener\">b</a>"
            ),
            "{html}"
        );
    }

    #[test]
    fn links_of_a_copy_lead_to_its_pages_or_are_text() {
        let text = "[a](/t/cup/bots) [b](/t/cup/submit) [c](#d) [e](https://example.org)";
        let page = |path: &str| (path == "/t/cup/bots").then(|| "bots.html".to_owned());
        let html = render_with_paths(text, "about-", &page).into_string();
        assert!(html.contains("<a href=\"bots.html\">a</a> b <a href=\"#about-d\">"), "{html}");
        assert!(html.contains("<a href=\"https://example.org\" rel="), "{html}");
    }

    /// Each text grows much more than its length if a renderer is careless.
    #[test]
    fn large_texts_stay_bounded() {
        let length = 64 << 10;
        let columns = "|a".repeat(length / 8);
        let table =
            format!("{columns}|\n{}|\n{}", "|-".repeat(length / 8), "|\n".repeat(length / 4));
        let reference =
            format!("[a]: https://{}\n{}", "x".repeat(length / 2), "[a]".repeat(10_000));
        let repeated = [">", "* ", "[", "*_", "&amp;", "`", "<b>", "# a\n", "![](", "&#65;"];
        let texts = repeated.iter().map(|part| part.repeat(length / part.len()));
        for text in texts.chain([table, reference]) {
            let html = render(&text, "guide-").into_string();
            let begin: String = text.chars().take(12).collect();
            assert!(html.len() < 24 * length, "{begin}: {} bytes", html.len());
        }
    }

    #[test]
    fn tables_and_code_are_shown() {
        let html =
            render("|a|b|\n|:-|-:|\n|1|2|\n\n```python\nx < 1\n```\n", "guide-").into_string();
        assert!(html.contains("<th>a</th>") && html.contains("<td>2</td>"), "{html}");
        assert!(html.contains(TABLE_BEGIN) && !html.contains("style="), "{html}");
        assert!(html.contains(CODE_BEGIN) && html.contains("x &lt; 1"), "{html}");
    }
}
