//! Figures for Prometheus, in the text of `OpenMetrics`. They are read from the database when they
//! are asked for, so any coordinator of it says the same.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::error::WebError;
use super::queue;
use super::session::Session;
use crate::db::workers;
use crate::rpc::{Shared, database};

/// The type of the text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running edition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEdition {
    tournament: String,
    edition: i64,
}

/// What of a running edition is in a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    tournament: String,
    edition: i64,
    state: String,
}

/// The figures.
#[derive(Debug, Default)]
struct Figures {
    planned: Family<OfEdition, Gauge>,
    counted: Family<OfEdition, Gauge>,
    matches: Family<InState, Gauge>,
    lots: Family<InState, Gauge>,
    workers: Gauge,
    leader: Gauge,
}

impl Figures {
    fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("arbiter");
        let planned = "Matches planned so far in a running edition";
        registry.register("edition_matches_planned", planned, self.planned.clone());
        let counted = "Matches in the standings of a running edition";
        registry.register("edition_matches_counted", counted, self.counted.clone());
        let matches = "Matches of a running edition by the state of their lots";
        registry.register("queue_matches", matches, self.matches.clone());
        let lots = "Lots of a running edition by state";
        registry.register("queue_lots", lots, self.lots.clone());
        let known = "Workers that have ever said hello";
        registry.register("workers_known", known, self.workers.clone());
        let leads = "Whether this coordinator leads those of its database";
        registry.register("leader", leads, self.leader.clone());
        registry
    }
}

pub(super) async fn show(
    State(shared): State<Shared>,
    session: Session,
) -> Result<impl IntoResponse, WebError> {
    let figures = Figures::default();
    for (tournament, edition) in queue::running(&shared, &session).await? {
        let number = i64::from(edition.number);
        let of = OfEdition { tournament: tournament.clone(), edition: number };
        figures.planned.get_or_create(&of).set(edition.matches);
        figures.counted.get_or_create(&of).set(edition.counted);
        for lot in edition.lots {
            let (tournament, state) = (tournament.clone(), lot.state);
            let within = InState { tournament, edition: number, state };
            figures.matches.get_or_create(&within).set(lot.matches);
            figures.lots.get_or_create(&within).set(lot.lots);
        }
    }
    let known = workers::list(&shared.pool).await.map_err(database)?.len();
    figures.workers.set(i64::try_from(known).unwrap_or(i64::MAX));
    figures.leader.set(shared.leadership.holds().into());
    let mut text = String::new();
    encode(&mut text, &figures.registry())
        .map_err(|error| WebError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}
