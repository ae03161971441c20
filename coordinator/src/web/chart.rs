//! Small SVG charts: confidence intervals, possible ranks, mean scores over editions, histograms of
//! durations.

use arbiter_proto::v1::RankSet;
use arbiter_ranking::statistics::text;
use arbiter_replay::number_text;
use maud::{Markup, html};

use super::layout;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) mean: f64,
    /// Half the width of the interval, if known.
    pub(super) margin: Option<f64>,
}

impl Interval {
    fn ends(self) -> (f64, f64) {
        let margin = self.margin.unwrap_or(0.0);
        (self.mean - margin, self.mean + margin)
    }
}

/// The smallest range that contains these intervals; never empty.
pub(super) fn range(intervals: impl Iterator<Item = Interval>) -> (f64, f64) {
    let ends = intervals.map(Interval::ends);
    let (least, most) = ends
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (low, high)| {
            (least.min(low), most.max(high))
        });
    if least < most { (least, most) } else { (least - 1.0, least + 1.0) }
}

/// The position of a value in a range, from 0 to 1.
fn position(value: f64, (least, most): (f64, f64)) -> f64 {
    ((value - least) / (most - least)).clamp(0.0, 1.0)
}

/// An interval as a bar with a dot, on the scale of a range.
pub(super) fn interval(interval: Interval, range: (f64, f64)) -> Markup {
    let at = |value| format!("{:.2}", 2.0 + 96.0 * position(value, range));
    let (low, high) = interval.ends();
    let label = number_text(text::mean(interval.mean, interval.margin));
    html! {
        svg.interval viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            line x1=(at(low)) y1="5" x2=(at(high)) y2="5" {}
            (dot(&at(interval.mean)))
        }
    }
}

/// A dot on a bar. It is the round end of a line of no length: a circle would be stretched with the
/// bar.
fn dot(x: &str) -> Markup {
    html! { line.dot x1=(x) y1="5" x2=(x) y2="5" {} }
}

/// Possible ranks as a bar, and the rank on the leaderboard as a dot. The best rank is on the left,
/// the last of the `ranked` bots is on the right.
pub(super) fn rank_set(set: Option<RankSet>, rank: u32, ranked: u32) -> Markup {
    let range = (1.0, f64::from(ranked.max(2)));
    let at = |rank: u32| format!("{:.2}", 2.0 + 96.0 * position(f64::from(rank), range));
    html! {
        @if let Some(RankSet { best, worst }) = set {
            svg.interval viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                line.ranks x1=(at(best)) y1="5" x2=(at(worst)) y2="5" {}
                (dot(&at(rank)))
            }
        }
    }
}

/// Mean scores over editions: a line of dots.
pub(super) fn means_over_editions(points: &[(i32, f64)]) -> Markup {
    let span = range(points.iter().map(|(_, mean)| Interval { mean: *mean, margin: None }));
    let last = points.len().saturating_sub(1).max(1);
    let x = |index: usize| {
        let part = f64::from(u32::try_from(index).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(last).unwrap_or(u32::MAX));
        // A single point is centred.
        format!("{:.1}", if points.len() == 1 { 210.0 } else { 40.0 + 340.0 * part })
    };
    let y = |value| format!("{:.1}", 130.0 - 110.0 * position(value, span));
    let line: Vec<_> =
        (0..).zip(points).map(|(index, (_, mean))| format!("{},{}", x(index), y(*mean))).collect();
    html! {
        svg.plot viewBox="0 0 400 160" role="img" aria-label="Mean score by edition" {
            title { "Mean score by edition" }
            @for value in [span.0, f64::midpoint(span.0, span.1), span.1] {
                line.scale x1="36" x2="390" y1=(y(value)) y2=(y(value)) {}
                text.left x="34" y=(y(value)) { (number_text(format!("{value:.2}"))) }
            }
            polyline points=(line.join(" ")) {}
            @for (index, (edition, mean)) in points.iter().enumerate() {
                circle cx=(x(index)) cy=(y(*mean)) r="3.5" {
                    title { "Edition " (edition) ": " (number_text(text::mean(*mean, None))) }
                }
                text x=(x(index)) y="150" { (edition) }
            }
        }
    }
}

/// A histogram of reply times: one bar for each bin. A bin has an upper bound in microseconds and a
/// count. The axis has every second bound, below the right end of its bar. On narrow screens it has
/// every fourth.
pub(super) fn histogram(bins: &[(u64, u64)]) -> Markup {
    let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let share = |part: u64, whole: u64| {
        let small = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        small(part) / small(whole)
    };
    let count = u64::try_from(bins.len()).unwrap_or(1).max(1);
    let width = 360.0 * share(1, count);
    html! {
        svg.plot.histogram viewBox="0 0 416 160" role="img" aria-label="Histogram of reply times" {
            title { "Histogram of reply times" }
            line.scale x1="30" x2="394" y1="130" y2="130" {}
            text.left x="28" y="20" { (most) }
            text.left x="28" y="130" { "0" }
            @for (index, (end, replies)) in (0_u64..).zip(bins) {
                @let left = 32.0 + 360.0 * share(index, count);
                @let height = 110.0 * share(*replies, most);
                rect x=(format!("{:.1}", left + 0.06 * width)) y=(format!("{:.1}", 130.0 - height))
                    width=(format!("{:.1}", 0.88 * width)) height=(format!("{height:.1}")) {
                    title { (bound(*end)) ": " (layout::count(*replies, "reply", "replies")) }
                }
                @if index % 2 == 0 && *end != u64::MAX {
                    text.second[index % 4 == 2] x=(format!("{:.1}", left + width)) y="147" { (duration(*end)) }
                }
            }
        }
    }
}

/// The upper bound of a bin as text.
fn bound(micros: u64) -> String {
    match micros {
        u64::MAX => "longer".to_owned(),
        micros => format!("≤ {}", duration(micros)),
    }
}

/// A bound in its largest unit. Bounds are 1, 2 or 5 times a power of ten.
fn duration(micros: u64) -> String {
    match micros {
        micros @ ..1000 => format!("{micros} µs"),
        micros @ ..1_000_000 => format!("{} ms", micros / 1000),
        micros => format!("{} s", micros / 1_000_000),
    }
}
