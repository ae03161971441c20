//! Metrics of running services equal SQL counts, and the trace of a submission leads from the
//! command to the leaderboard. A test collector stores the spans.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[expect(dead_code, reason = "only requests are needed here")]
#[path = "web/browser.rs"]
mod browser;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use arbiter_coordinator::postgres::Durability;
use browser::Browser;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address, wait_until};
use support::{Bots, arbiter};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A coordinator, workers, and a tournament in which every counted event happens.
struct Site {
    database: Database,
    coordinator: Option<Service>,
    worker: Option<Service>,
    grpc: SocketAddr,
    metrics: SocketAddr,
    worker_metrics: SocketAddr,
    /// The address of the trace collector, if any.
    otlp: Option<String>,
    admin: String,
    /// The worker's token: its name belongs to it.
    pass: String,
    directory: tempfile::TempDir,
}

impl Site {
    fn open(otlp: Option<String>) -> Self {
        let database = Database::start(Durability::Unsynced);
        let admin = database.token("admin");
        let pass = database.token("worker");
        let mut site = Self {
            database,
            coordinator: None,
            worker: None,
            grpc: free_address(),
            metrics: free_address(),
            worker_metrics: free_address(),
            otlp,
            admin,
            pass,
            directory: tempfile::tempdir().unwrap(),
        };
        site.start_coordinator();
        site
    }

    fn start_coordinator(&mut self) {
        let mut command = self.database.coordinator(self.grpc);
        command.args(["--lease", "2s", "--metrics", &self.metrics.to_string()]);
        self.trace(&mut command);
        let log = self.directory.path().join("coordinator");
        self.coordinator = None;
        let mut coordinator = Service::start(&mut command, &log);
        coordinator.wait_for_log("serving");
        // The log also has the lines from before the restart.
        wait_until("the coordinator answers requests", || TcpStream::connect(self.metrics).is_ok());
        self.coordinator = Some(coordinator);
    }

    fn start_worker(&mut self) {
        let mut command = self.command(&self.pass, "worker --slots 1 --name cellar --metrics");
        command.arg(self.worker_metrics.to_string());
        command.arg("--spool").arg(self.directory.path().join("spool"));
        self.trace(&mut command);
        let log = self.directory.path().join("worker");
        self.worker = None;
        self.worker = Some(Service::start(&mut command, &log));
    }

    fn trace(&self, command: &mut Command) {
        if let Some(otlp) = &self.otlp {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", otlp);
            command.env("OTEL_BSP_SCHEDULE_DELAY", "100");
            command.env("RUST_LOG", "arbiter_coordinator=debug,info");
        }
    }

    /// A client command with a token.
    fn command(&self, token: &str, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.grpc));
        command.env("ARBITER_TOKEN", token);
        command
    }

    /// The output of a command of the administrator, which must succeed.
    fn succeed(&self, words: &str) -> String {
        done(&self.command(&self.admin, words).output().unwrap())
    }

    /// A tournament of gomoku between these bots.
    fn create(&self, house: &[String]) {
        let file = self.directory.path().join("cup.toml");
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"1s\"\n\
             [schedule]\nkind = \"round_robin\"\nsides = \"both\"\n\
             [submissions]\nwindow = \"1ms\"\n[house]\nbots = {house:?}\n"
        );
        fs::write(&file, text).unwrap();
        done(&self.command(&self.admin, "tournament create").arg(&file).output().unwrap());
    }

    /// Waits until this many editions are complete.
    fn wait_for_editions(&self, editions: i64) {
        wait_until("the edition is complete", || {
            self.count("SELECT count(*) FROM editions WHERE state = 'complete'") == editions
        });
    }

    fn count(&self, query: &str) -> i64 {
        self.rows(query).values().sum()
    }

    /// Numbers by names.
    #[tokio::main(flavor = "current_thread")]
    async fn rows(&self, query: &str) -> BTreeMap<String, i64> {
        let options = self.database.postgres.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let named = if query.contains(" AS name") {
            query.to_owned()
        } else {
            format!("SELECT '' AS name, ({query})::bigint")
        };
        let rows: Vec<(String, i64)> =
            sqlx::query_as(AssertSqlSafe(named)).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows.into_iter().collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for service in [&self.coordinator, &self.worker].into_iter().flatten() {
                eprintln!("{}", service.log());
            }
        }
    }
}

/// Metric series with their values.
#[derive(Debug)]
struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// The metrics of an address.
    fn at(address: SocketAddr) -> Self {
        Self::read(&Browser::new(address).page("/metrics"))
    }

    fn read(text: &str) -> Self {
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        let mut read = BTreeMap::new();
        for (series, value) in series {
            assert!(read.insert(series.clone(), value).is_none(), "{series} appears twice");
        }
        Self(read)
    }

    fn of(&self, series: &str) -> i64 {
        let value = self.0.get(series).unwrap_or_else(|| panic!("no {series} in {self:?}"));
        #[expect(clippy::cast_possible_truncation, reason = "the counts are small")]
        let count = *value as i64;
        count
    }

    /// The sum over all labels.
    fn sum(&self, name: &str) -> i64 {
        let family = self.0.keys().filter(|series| series.split('{').next() == Some(name));
        family.map(|series| self.of(series)).sum()
    }

    /// The values by a label, without zeros.
    fn by(&self, name: &str, label: &str) -> BTreeMap<String, i64> {
        let mut counts = BTreeMap::new();
        let family = self.0.keys().filter(|series| series.split('{').next() == Some(name));
        for series in family.filter(|series| self.of(series) != 0) {
            let value = series.split(&format!("{label}=\"")).nth(1).unwrap();
            let value = value.split('"').next().unwrap().to_owned();
            *counts.entry(value).or_default() += self.of(series);
        }
        counts
    }
}

/// The results of all editions. Editions share matches, and each of them counts the results.
macro_rules! counted {
    () => {
        "editions e JOIN results r ON r.tournament = e.tournament AND r.number < e.end_match
            AND NOT EXISTS (
                SELECT FROM absences a WHERE a.tournament = r.tournament AND a.number = r.number
                    AND a.since <= e.number AND (a.until IS NULL OR a.until > e.number))"
    };
}

/// Forfeits by the names of the standings, counted from the results.
const FORFEITS: &str = concat!(
    "SELECT (ARRAY['clock', 'illegal', 'gone', 'flood'])[code] AS name, count(*) FROM ",
    counted!(),
    ", unnest(forfeits) AS code WHERE code > 0 GROUP BY 1"
);

/// Metrics that come from the database equal it, in every process and at any time.
fn equal_to_sql(site: &Site, figures: &Figures) {
    let equal = |name: &str, query: &str| {
        assert_eq!(figures.sum(name), site.count(query), "{name}: {query}");
    };
    equal("arbiter_matches_counted_total", concat!("SELECT count(*) FROM ", counted!()));
    equal("arbiter_faults_total", "SELECT count(*) FROM faults");
    let kinds = "SELECT kind AS name, count(*) FROM faults GROUP BY 1";
    assert_eq!(figures.by("arbiter_faults_total", "kind"), site.rows(kinds));
    assert_eq!(figures.by("arbiter_forfeits_total", "kind"), site.rows(FORFEITS));
    let trials = "SELECT state::text AS name, count(*) FROM trials GROUP BY 1";
    assert_eq!(figures.by("arbiter_trials", "state"), site.rows(trials));
    let editions = "SELECT state::text AS name, count(*) FROM editions GROUP BY 1";
    assert_eq!(figures.by("arbiter_editions", "state"), site.rows(editions));
    equal("arbiter_workers_known", "SELECT count(*) FROM workers");
    assert_eq!(figures.of("arbiter_database_up"), 1);
}

/// Accepted reports of lots or of trials.
fn accepted(of: &str) -> String {
    format!("arbiter_reports_total{{kind=\"{of}\",status=\"accepted\"}}")
}

/// A coordinator that was always the only one has counted everything.
fn equal_to_history(site: &Site, figures: &Figures) {
    let leases = figures.by("arbiter_leases_total", "kind");
    assert_eq!(leases["lot"], site.count("SELECT sum(attempt) FROM lots"));
    assert_eq!(leases["trial"], site.count("SELECT sum(attempt) FROM trials"));
    let played = "SELECT count(*) FROM lots WHERE state = 'counted'";
    assert_eq!(figures.of(&accepted("lot")), site.count(played));
    assert_eq!(figures.of(&accepted("trial")), site.count("SELECT count(*) FROM trials"));
    let played = "SELECT count(*) FROM results";
    assert_eq!(figures.of("arbiter_matches_reported_total"), site.count(played));
    let lost = "SELECT count(*) FROM evidence WHERE detail LIKE 'clock%' AND cpu_us * 2 < wall_us";
    assert_eq!(figures.by("arbiter_time_losses_total", "cpu")["idle"], site.count(lost));
    let expired = "SELECT count(*) FROM faults WHERE kind = 'expired'";
    assert_eq!(figures.of("arbiter_leases_expired_total"), site.count(expired));
    assert_eq!(figures.of("arbiter_editions_completed_total"), 2);
    // A worker that was killed may have been given something that it was not sent any more.
    let unsent =
        figures.sum("arbiter_leases_total") - figures.of("arbiter_dispatch_duration_seconds_count");
    assert!((0..=figures.of("arbiter_leases_returned_total")).contains(&unsent), "{unsent}");
    let submit =
        "arbiter_grpc_calls_total{method=\"arbiter.v1.BotService/SubmitVersion\",code=\"Ok\"}";
    assert_eq!(figures.of(submit), site.count("SELECT count(*) FROM versions"));
}

/// No label has the name of a bot or an owner, or another unbounded value. Only the counts of
/// audits have the names of workers.
fn names_no_bot_and_no_owner(figures: &Figures, worker: &Figures) {
    let names = |figures: &Figures, name: &str| -> Vec<String> {
        let quoted = format!("\"{name}\"");
        figures.0.keys().filter(|series| series.contains(&quoted)).cloned().collect()
    };
    for name in ["ada", "tim", "eve", "newcomer", "loser"] {
        for figures in [figures, worker] {
            assert_eq!(names(figures, name), [""; 0]);
        }
    }
    assert_eq!(names(worker, "cellar"), [""; 0]);
    let of_worker = names(figures, "cellar");
    let is_audit = |series: &&String| {
        ["match_audits{", "workers_residual_p_value{", "workers_false_time_losses{"]
            .map(|name| format!("arbiter_{name}"))
            .iter()
            .any(|name| series.starts_with(name))
    };
    assert!(
        !of_worker.is_empty() && of_worker.iter().all(|series| is_audit(&series)),
        "{of_worker:?}"
    );
}

#[test]
fn metrics_equal_sql_counts() {
    let mut site = Site::open(None);
    let bots = Bots::new();
    site.create(&[
        bots.rascal("ada", "honest", 0, ""),
        bots.rascal("tim", "silent", 1, ""),
        bots.rascal("eve", "exit", 2, ""),
    ]);
    site.succeed("tournament start cup");
    // Workers are killed until one is that played: its lot is played again by the next.
    while site.count("SELECT count(*) FROM faults") == 0 {
        site.start_worker();
        wait_until("a match is played", || {
            site.count("SELECT count(*) FROM lots WHERE state = 'leased'") > 0
        });
        site.worker.as_mut().unwrap().kill();
        wait_until("its lease ends", || {
            site.count("SELECT count(*) FROM lots WHERE state = 'leased'") == 0
        });
    }
    site.start_worker();
    site.wait_for_editions(1);
    // A submission brings another edition, which takes over what was played.
    let player = site.database.token("player");
    let good = bots.rascal("newcomer", "honest", 0, "");
    done(&site.command(&player, "submit cup").arg(&good).output().unwrap());
    let bad = bots.rascal("loser", "segv", 1, "");
    let refused = site.command(&player, "submit cup").arg(&bad).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    site.wait_for_editions(2);

    wait_until("every report is acknowledged", || {
        Figures::at(site.worker_metrics).of("arbiter_worker_spool_reports") == 0
    });
    let figures = Figures::at(site.metrics);
    equal_to_sql(&site, &figures);
    equal_to_history(&site, &figures);

    let worker = Figures::at(site.worker_metrics);
    assert_eq!(worker.of("arbiter_worker_connected"), 1);
    assert_eq!(worker.of("arbiter_worker_slots{state=\"idle\"}"), 1);
    let matches = worker.sum("arbiter_worker_matches_total");
    assert_eq!(worker.of("arbiter_worker_margin_used_seconds_count"), matches);
    assert_eq!(worker.of("arbiter_worker_bot_start_seconds_count"), 2 * matches);
    let jobs = worker.by("arbiter_worker_jobs_total", "outcome");
    let acknowledged = "arbiter_worker_report_acknowledgements_total{status=\"accepted\"}";
    assert_eq!(jobs["reported"], worker.of(acknowledged));

    names_no_bot_and_no_owner(&figures, &worker);
    let well = |address| ["/healthz", "/readyz"].map(|path| Browser::new(address).get(path).status);
    assert_eq!((well(site.metrics), well(site.worker_metrics)), ([200; 2], [200; 2]));

    // Another process says the same of the database, and begins to count by itself.
    assert_eq!(site.coordinator.as_mut().unwrap().stop(), Some(0));
    wait_until("the worker has lost its coordinator", || well(site.worker_metrics) == [200, 503]);
    site.start_coordinator();
    let figures = Figures::at(site.metrics);
    equal_to_sql(&site, &figures);
    assert_eq!(figures.of(&accepted("lot")), 0);
}

/// A collector that stores the spans it receives.
#[derive(Clone, Debug, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.0.lock().unwrap().extend(spans);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// The spans of this name.
    fn named(&self, name: &str) -> Vec<Span> {
        self.0.lock().unwrap().iter().filter(|span| span.name == name).cloned().collect()
    }

    /// The names from the first span of a trace down to this one.
    fn path(&self, span: &Span) -> Vec<String> {
        let mut names = vec![span.name.clone()];
        let mut parent = span.parent_span_id.clone();
        while !parent.is_empty() {
            let spans = self.0.lock().unwrap();
            let parent_span = spans.iter().find(|parent_span| parent_span.span_id == parent);
            let parent_span =
                parent_span.unwrap_or_else(|| panic!("a parent of {names:?} is missing"));
            names.push(parent_span.name.clone());
            parent = parent_span.parent_span_id.clone();
        }
        names.reverse();
        names
    }
}

#[test]
fn a_submission_is_traced_to_the_leaderboard() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let collector = Collector::default();
    let address = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(collector.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    });
    let mut site = Site::open(Some(format!("http://{address}")));
    site.start_worker();
    let bots = Bots::new();
    site.create(&[bots.rascal("ada", "honest", 0, ""), bots.rascal("bob", "honest", 0, "")]);
    site.succeed("tournament start cup");
    site.wait_for_editions(1);
    let player = site.database.token("player");
    let bot = bots.rascal("newcomer", "honest", 0, "");
    done(&site.command(&player, "submit cup").arg(&bot).output().unwrap());
    site.wait_for_editions(2);
    let submitted = || collector.named("submit").into_iter().next_back();
    let of_it = |name: &str| {
        let trace = submitted().map(|span| span.trace_id);
        let spans = collector.named(name).into_iter();
        spans.filter(|span| Some(&span.trace_id) == trace.as_ref()).collect::<Vec<_>>()
    };
    wait_until("the trace ends at the leaderboard", || !of_it("edition complete").is_empty());
    // What was played is told while the rest is.
    let lots = site.count(
        "SELECT count(*) FROM lots l JOIN editions e ON e.tournament = l.tournament
         WHERE e.number = 2 AND l.number >= e.first_match AND l.number < e.end_match",
    );
    let lots = usize::try_from(lots).unwrap();
    wait_until("all spans are stored", || of_it("report stored").len() == lots);
    assert_eq!(site.worker.as_mut().unwrap().stop(), Some(0));
    assert_eq!(site.coordinator.as_mut().unwrap().stop(), Some(0));

    let trial = ["submit", "trial leased", "trial played", "trial stored"];
    let path = |name: &str| collector.path(&of_it(name)[0]);
    assert_eq!(path("trial stored"), trial);
    assert_eq!(path("build"), [&trial[..3], &["build"]].concat());
    assert_eq!(path("pre-flight"), [&trial[..3], &["pre-flight"]].concat());
    let edition = [&trial[..], &["edition opened"]].concat();
    assert_eq!(path("edition complete"), [&edition[..], &["edition complete"]].concat());
    let lots = [&edition[..], &["lot leased", "lot played", "report stored"]].concat();
    for report in of_it("report stored") {
        assert_eq!(collector.path(&report), lots);
    }
    let [opened, complete] = [&of_it("edition opened")[0], &of_it("edition complete")[0]];
    assert!(complete.end_time_unix_nano > opened.end_time_unix_nano);
    assert_eq!(site.count("SELECT count(*) FROM trace_contexts"), 0, "finished traces are deleted");

    // Logs name the same trace.
    let trace = submitted().unwrap().trace_id;
    let trace = format!("{:032x}", u128::from_be_bytes(trace.try_into().unwrap()));
    let services = [&site.coordinator, &site.worker].map(|service| service.as_ref().unwrap());
    for service in services {
        let log = service.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        let about: Vec<&str> = lines.clone().filter(|line| line.contains(&trace)).collect();
        assert!(!about.is_empty(), "{trace}: {log}");
        for line in lines {
            let read = serde_json::from_str::<Unambiguous>(line);
            assert!(read.is_ok(), "{:?}: {line}", read.err());
        }
    }
}

/// A JSON value without duplicate keys.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects whose names differ")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<Self>()?;
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format!("`{name}` is there twice")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}
