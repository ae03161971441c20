//! A worker against a scripted coordinator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "worker/packages.rs"]
mod packages;
mod support;

use std::fs;
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::Games;
use arbiter_proto::settings::StateScope;
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_replay::verify;
use arbiter_worker::bundle;
use arbiter_worker::worker::{Shutdown, WorkerError};
use support::{
    Coordinator, RunningWorker, SILENT, TestDirectory, WorkerStream, lease, lot, settings, shipped,
};
use tonic::Status;

/// The forfeit of a bot that exits.
const GONE: i32 = v1::Forfeit::Gone as i32;

fn leases(lots: &[i64]) -> Vec<v1::Lease> {
    lots.iter().map(|number| lease(*number)).collect()
}

/// A packed bundle of these files, without the checks of Arbiter.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(contents.len() as u64);
        builder.append_data(&mut header, path, contents.as_bytes()).unwrap();
    }
    zstd::encode_all(&builder.into_inner().unwrap()[..], 1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lot_is_played_reported_and_acknowledged() {
    let mut coordinator = Coordinator::start_for(Some("secret")).await;
    let directory = TestDirectory::new();
    let center = coordinator.submit(&shipped("gomoku/center"));
    let mut config = directory.config(&coordinator, 2);
    config.coordinator.token = Some("secret".to_owned());
    let worker = RunningWorker::start(config);

    let mut stream = coordinator.welcome().await;
    let Payload::Hello(hello) = &stream.received[0] else { panic!("{:?}", stream.received) };
    assert_eq!(hello.rules, arbiter_games::RULES_VERSION);
    assert_eq!(hello.name, fs::read_to_string(directory.spool().join("name")).unwrap().trim());
    assert!(hello.sandbox.starts_with("sandbox level D"), "{}", hello.sandbox);
    assert_eq!(stream.capacity().await, 2);

    let table = [center.clone(), center.clone()];
    stream.send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&table, &table]))).await;
    let report = stream.report().await;
    assert_eq!((report.lease, report.level.as_str()), (Some(lease(1)), "D"));
    assert_eq!(report.results.iter().map(|result| result.number).collect::<Vec<_>>(), [100, 101]);
    for result in &report.results {
        assert_eq!(result.seats.len(), 2);
        assert_eq!(result.seats.iter().map(|seat| seat.score[0]).sum::<i64>(), 2, "a point each");
        assert!(result.seats.iter().all(|seat| seat.forfeit == 0 && seat.files.is_empty()));
        let record = zstd::decode_all(&result.record[..]).unwrap();
        let verified = verify(&Games::built_in(), &record[..]).unwrap();
        assert_eq!(verified.transcript.as_bytes()[..], result.transcript);
        let text = String::from_utf8(record).unwrap();
        assert!(text.contains(&blake3::Hash::from_slice(&center).unwrap().to_string()));
    }
    assert_eq!(stream.capacity().await, 1, "the slot is idle again");
    assert_eq!(coordinator.fetch_count(&center), 1, "once for all seats");
    assert_eq!(fs::read_dir(directory.spool().join("reports")).unwrap().count(), 1);
    stream.respond(report.lease, v1::ReportStatus::Accepted).await;

    worker.shutdown.send_replace(Shutdown::Drain);
    stream.receive_all().await;
    drop(stream);
    worker.end().await.unwrap();
    assert_eq!(fs::read_dir(directory.spool().join("reports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_survives_its_connection_and_its_worker() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.serve(b"no bundle");
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.capacity().await, 1);
    stream
        .send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[digest.clone(), digest.clone()]])))
        .await;
    let report = stream.report().await;
    drop(stream);

    // The stream ends before the response. The worker renews the lease and sends the report again.
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.renewed_leases().await, leases(&[1]));
    assert_eq!(stream.report().await, report);
    worker.kill(&directory).await;
    drop(stream);

    // Another worker with the same spool sends the report too.
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.report().await, report);
    assert!(stream.received.contains(&Payload::Capacity(v1::Capacity { slots: 1 })));
    stream.respond(report.lease, v1::ReportStatus::Late).await;
    worker.shutdown.send_replace(Shutdown::Drain);
    stream.receive_all().await;
    drop(stream);
    worker.end().await.unwrap();
    let remaining = fs::read_dir(directory.spool().join("reports")).unwrap().count();
    assert_eq!(remaining, 0, "the worker deletes a late report");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postponed_report_is_sent_again_and_a_refused_one_is_stored_with_its_reason() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.serve(b"no bundle");
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    stream
        .send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[digest.clone(), digest.clone()]])))
        .await;
    let report = stream.report().await;
    // The worker keeps a report whose status is unknown to this version.
    for status in [v1::ReportStatus::Postponed as i32, 99, v1::ReportStatus::Postponed as i32] {
        let reason = "the disk is full".to_owned();
        stream
            .send(CoordinatorPayload::ReportResponse(v1::ReportResponse {
                lease: report.lease,
                status,
                reason,
            }))
            .await;
        assert_eq!(stream.report().await, report);
    }
    let reason = "a score is out of bounds".to_owned();
    let status = v1::ReportStatus::Refused.into();
    stream
        .send(CoordinatorPayload::ReportResponse(v1::ReportResponse {
            lease: report.lease,
            status,
            reason,
        }))
        .await;
    worker.shutdown.send_replace(Shutdown::Drain);
    stream.receive_all().await;
    drop(stream);
    let metrics = Arc::clone(&worker.metrics);
    worker.end().await.unwrap();
    let mut figures = String::new();
    metrics.encode(&mut figures).unwrap();
    assert!(figures.contains("arbiter_worker_refused_reports 1\n"), "{figures}");
    let refused = directory.spool().join("refused");
    let why = fs::read_to_string(refused.join("3_1_1.txt")).unwrap();
    assert_eq!(why, "a score is out of bounds\n");
    assert!(refused.join("3_1_1").is_file());
    assert_eq!(fs::read_dir(directory.spool().join("reports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_waits_until_the_spool_can_be_written() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.serve(b"no bundle");
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    // Nothing can be written if there is a file instead of the directory.
    let reports = directory.spool().join("reports");
    fs::rename(&reports, directory.spool().join("moved")).unwrap();
    fs::write(&reports, "in the way").unwrap();
    stream
        .send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[digest.clone(), digest.clone()]])))
        .await;
    assert_eq!(stream.renewed_leases().await, leases(&[1]));
    assert_eq!(stream.renewed_leases().await, leases(&[1]), "the lot is held meanwhile");
    fs::remove_file(&reports).unwrap();
    fs::rename(directory.spool().join("moved"), &reports).unwrap();
    let report = stream.report().await;
    assert_eq!(report.lease, Some(lease(1)));
    assert!(
        stream.received.iter().all(|say| !matches!(say, Payload::Fault(_))),
        "{:?}",
        stream.received
    );
    stream.respond(report.lease, v1::ReportStatus::Accepted).await;
    worker.shutdown.send_replace(Shutdown::Drain);
    stream.receive_all().await;
    drop(stream);
    worker.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lot_survives_its_connection() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let waiting = format!("until [ -e {}/go ]; do sleep 0.01; done", directory.path().display());
    let digest = coordinator.submit(&directory.bot("waiting", &waiting));
    let worker = directory.work(&coordinator, 2);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    stream
        .send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[digest.clone(), digest.clone()]])))
        .await;
    stream.renewed_leases().await;
    drop(stream);

    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.renewed_leases().await, leases(&[1]), "it is still played");
    assert_eq!(stream.capacity().await, 1, "the other slot is offered again");
    fs::write(directory.path().join("go"), "").unwrap();
    let report = stream.report().await;
    assert_eq!(report.results[0].seats[0].forfeit, GONE);
    worker.kill(&directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_stops_only_its_match() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let silent = coordinator.submit(&directory.bot("silent", SILENT));
    let table = [silent.clone(), silent.clone()];
    let worker = directory.work(&coordinator, 2);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.capacity().await, 2);
    stream.send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&table]))).await;
    stream.send(CoordinatorPayload::Lot(lot(2, "gomoku", &[&table]))).await;
    while stream.renewed_leases().await.len() < 2 {}
    stream.send(CoordinatorPayload::LeasesLost(v1::LeasesLost { leases: leases(&[1]) })).await;
    assert_eq!(stream.capacity().await, 1);
    assert_eq!(stream.renewed_leases().await, leases(&[2]));
    worker.shutdown.send_replace(Shutdown::Now);
    let messages = stream.receive_all().await;
    let given_back = Payload::ReturnLeases(v1::ReturnLeases { leases: leases(&[2]) });
    assert!(messages.contains(&given_back), "{messages:?}");
    let all = stream.received.iter().chain(&messages);
    assert!(!all.clone().any(|message| matches!(message, Payload::Report(_) | Payload::Fault(_))));
    drop(stream);
    worker.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn system_errors_are_faults() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.serve(b"no bundle");
    let unknown = vec![7; 32];
    // Another machine may have what this one lacks, as that of the trial had.
    let manifest = "name = \"x\"\nrun = [\"no-such-interpreter\", \"bot\"]\n";
    let lacking = coordinator.serve(&archive(&[("bot.toml", manifest)]));
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    let table = [digest.clone(), digest.clone()];
    let too_few = lot(6, "gomoku", &[slice::from_ref(&digest)]);
    let no_digest = lot(7, "gomoku", &[&[digest.clone(), vec![1]]]);
    let cases = [
        (lot(1, "chess", &[&table]), "no game `chess`"),
        (v1::Lot { settings: "{}".to_owned(), ..lot(2, "gomoku", &[&table]) }, "settings: "),
        (lot(3, "gomoku", &[]), "the lot has no matches"),
        (lot(4, "gomoku", &[&[digest.clone(), unknown]]), "no such bundle"),
        (
            lot(5, "gomoku", &[&[digest.clone(), lacking]]),
            "`no-such-interpreter` is not on the PATH",
        ),
        (too_few, "cannot start a match"),
        (no_digest, "`digest` has 1 bytes"),
    ];
    for (lot, part) in cases {
        let lease = lot.lease;
        stream.send(CoordinatorPayload::Lot(lot)).await;
        let fault = stream.fault().await;
        assert_eq!(fault.lease, lease);
        assert!(fault.reason.contains(part), "{fault:?}");
        // After a pause. Each fault makes the pause longer, and a completed lot resets it.
        assert_eq!(stream.capacity().await, 1);
        stream.send(CoordinatorPayload::Lot(support::lot(8, "gomoku", &[&table]))).await;
        assert_eq!(stream.capacity().await, 1);
    }
    worker.kill(&directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unplayable_bundle_forfeits() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let run = |program: &str| format!("name = \"x\"\nrun = [{program}]\n");
    let cases = [
        (b"no bundle".to_vec(), "cannot be unpacked"),
        (archive(&[("readme", "")]), "not a bot"),
        (archive(&[("bot.toml", "name = \"x\"\nruns = []\n")]), "bot.toml: line 2: unknown field"),
        (archive(&[("bot.toml", &run("\"./gone\""))]), "its program ./gone is missing"),
        (archive(&[("bot.toml", &run("\"./here\"")), ("here", "")]), "chmod +x ./here"),
        (archive(&[("bot.toml", &run("\"../here\""))]), "lies outside"),
        (
            archive(&[("bot.toml", &format!("{}protocol = \"http\"\n", run("\"sh\"")))]),
            "only tricks is played over http",
        ),
    ];
    let center = coordinator.submit(&shipped("gomoku/center"));
    let digests: Vec<_> = cases.iter().map(|(bytes, _)| coordinator.serve(bytes)).collect();
    let tables: Vec<_> = digests.iter().map(|digest| [digest.clone(), center.clone()]).collect();
    let tables: Vec<_> = tables.iter().map(|table| &table[..]).collect();
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    stream.send(CoordinatorPayload::Lot(lot(1, "gomoku", &tables))).await;
    let report = stream.report().await;
    assert_eq!(report.results.len(), cases.len());
    for (result, (_, part)) in report.results.iter().zip(&cases) {
        assert_eq!((result.seats[0].forfeit, result.seats[1].forfeit), (GONE, 0), "{part}");
        assert!(result.seats[0].score < result.seats[1].score);
        let record = String::from_utf8(zstd::decode_all(&result.record[..]).unwrap()).unwrap();
        assert!(record.contains(part), "{part}: {record}");
        assert!(!record.contains(directory.path().to_str().unwrap()), "{record}");
        verify(&Games::built_in(), record.as_bytes()).unwrap();
    }
    worker.kill(&directory).await;
}

/// Counts its decisions in a file, and hits up to the one with this number.
fn counting(most: u32) -> String {
    format!("echo x >> seen\n[ $(wc -l < seen) -le {most} ] && echo H || echo S")
}

#[tokio::test(flavor = "multi_thread")]
async fn bot_state_goes_into_the_report() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.submit(&directory.bot("counting", &counting(0)));
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    let mut files = Vec::new();
    let mut counts = Vec::new();
    for number in 1..=3 {
        let mut lot = lot(number, "blackjack", &[slice::from_ref(&digest)]);
        lot.settings = settings(StateScope::Tournament);
        lot.matches[0].seats[0].files = files;
        lot.matches[0].params = "{\"hands\": 2}".to_owned();
        stream.send(CoordinatorPayload::Lot(lot)).await;
        let mut report = stream.report().await;
        let seat = report.results[0].seats.remove(0);
        assert_eq!(seat.forfeit, 0);
        files = seat.files;
        let state = tempfile::tempdir().unwrap();
        bundle::unpack_state(&files, state.path()).unwrap();
        let names: Vec<_> = fs::read_dir(state.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(names.len(), 1, "only files that the bot wrote, not its program: {names:?}");
        counts.push(fs::read_to_string(state.path().join("seen")).unwrap().lines().count());
    }
    assert!(counts[0] > 0 && counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
    worker.kill(&directory).await;
}

/// A fault would occur on every worker, and the bot would be suspended.
#[tokio::test(flavor = "multi_thread")]
async fn forged_bot_state_is_not_a_fault() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let bot = directory.bot("counting", &counting(0));
    let digest = coordinator.submit(&bot);
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("seen"), vec![b'x'; 10_000]).unwrap();
    let packed = bundle::pack_state(state.path()).unwrap();
    for (number, files) in (1..).zip([&b"no archive"[..], &packed[..packed.len() - 1]]) {
        let mut lot = lot(number, "blackjack", &[slice::from_ref(&digest)]);
        lot.settings = settings(StateScope::Tournament);
        lot.matches[0].seats[0].files = files.to_vec();
        lot.matches[0].params = "{\"hands\": 2}".to_owned();
        stream.send(CoordinatorPayload::Lot(lot)).await;
        let report = stream.report().await;
        assert_eq!(report.results[0].seats[0].forfeit, 0);
    }
    worker.kill(&directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_the_worker() {
    let coordinator = Coordinator::start_for(Some("secret")).await;
    let directory = TestDirectory::new();
    let worker = directory.work(&coordinator, 1);
    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("refused this worker: no such token; set --token"),
        "{error}"
    );

    let coordinator = Coordinator::start().await;
    coordinator.refuse(Status::failed_precondition("it plays by rules 0, not 1"));
    let error = TestDirectory::new().work(&coordinator, 1).end().await.unwrap_err();
    assert!(error.to_string().contains("rules 0"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_connects_to_a_coordinator_that_starts_later() {
    let mut coordinator = Coordinator::start().await;
    coordinator.refuse(Status::unavailable("not yet"));
    let directory = TestDirectory::new();
    let worker = directory.work(&coordinator, 1);
    // Without a coordinator the worker retries, and still stops on request.
    let elsewhere = TestDirectory::new();
    let mut config = elsewhere.config(&coordinator, 1);
    config.coordinator.server = "http://127.0.0.1:1".to_owned();
    let lonely = RunningWorker::start(config);
    lonely.shutdown.send_replace(Shutdown::Drain);
    lonely.end().await.unwrap();
    coordinator.stop_refusing();
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.capacity().await, 1);
    worker.kill(&directory).await;
}

/// As with a full database: the coordinator welcomes workers, but refuses their next message. The
/// worker waits longer each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_only_welcomes_is_retried_slowly() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let worker = directory.work(&coordinator, 1);
    drop(coordinator.welcome().await);
    let begun = Instant::now();
    for _ in 0..5 {
        drop(coordinator.welcome().await);
    }
    let minimum: Duration = (0..5).map(|failures| Duration::from_millis(50 << failures)).sum();
    assert!(begun.elapsed() >= minimum, "{:?}", begun.elapsed());
    worker.kill(&directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_finishes_lots_and_takes_no_new_ones() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let waiting = format!("until [ -e {}/go ]; do sleep 0.01; done", directory.path().display());
    let digest = coordinator.submit(&directory.bot("waiting", &waiting));
    let table = [digest.clone(), digest.clone()];
    let worker = directory.work(&coordinator, 2);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    stream.send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&table]))).await;
    started(&mut stream, &coordinator, &digest).await;
    worker.shutdown.send_replace(Shutdown::Drain);
    // The lot was sent before the coordinator knew of the drain.
    stream.send(CoordinatorPayload::Lot(lot(2, "gomoku", &[&table]))).await;
    let back = stream
        .until(|message| match message {
            Payload::ReturnLeases(back) => Some(back.leases.clone()),
            _ => None,
        })
        .await;
    assert_eq!(back, leases(&[2]));
    fs::write(directory.path().join("go"), "").unwrap();
    let report = stream.report().await;
    assert_eq!(report.lease, Some(lease(1)));
    stream.respond(report.lease, v1::ReportStatus::Accepted).await;
    let messages = stream.receive_all().await;
    assert!(
        !messages.iter().any(|message| matches!(message, Payload::Capacity(_))),
        "{messages:?}"
    );
    drop(stream);
    worker.end().await.unwrap();
}

/// Waits until a bundle was fetched and then a lease renewed: the lot is being played.
async fn started(stream: &mut WorkerStream, coordinator: &Coordinator, digest: &[u8]) {
    while coordinator.fetch_count(digest) == 0 {
        stream.renewed_leases().await;
    }
    stream.renewed_leases().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lots_that_exceed_the_drain_time_are_returned() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let digest = coordinator.submit(&directory.bot("silent", SILENT));
    let mut config = directory.config(&coordinator, 1);
    config.drain = Duration::from_millis(50);
    let worker = RunningWorker::start(config);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    stream
        .send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[digest.clone(), digest.clone()]])))
        .await;
    started(&mut stream, &coordinator, &digest).await;
    worker.shutdown.send_replace(Shutdown::Drain);
    let messages = stream.receive_all().await;
    assert_eq!(
        messages.last(),
        Some(&Payload::ReturnLeases(v1::ReturnLeases { leases: leases(&[1]) }))
    );
    drop(stream);
    worker.end().await.unwrap();
}

/// The mount point of the v1 freezer. Inside a group of it a process receives no signal, not even
/// SIGKILL, as in a system call that takes minutes.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// The process with this command line; waits until it exists.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
async fn process(words: &str) -> u32 {
    loop {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let command_line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            if command_line.trim_end_matches('\0').replace('\0', " ") == words {
                return entry.file_name().to_str().unwrap().parse().unwrap();
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_a_usable_slot_recovers() {
    if !Path::new(FREEZER).join("tasks").exists() {
        println!("skipped: there is no freezer that keeps a process from dying");
        return;
    }
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let sleeper = format!("sleep 1000{}", std::process::id());
    let silent = coordinator.submit(&directory.bot("silent", &format!("exec {sleeper}")));
    let broken = coordinator.serve(b"no bundle");
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.capacity().await, 1);
    stream.send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[silent, broken]]))).await;
    let pid = process(&sleeper).await;
    let freezer = Path::new(FREEZER).join(format!("held-{pid}"));
    fs::create_dir(&freezer).unwrap();
    fs::write(freezer.join("cgroup.procs"), pid.to_string()).unwrap();
    fs::write(freezer.join("freezer.state"), "FROZEN").unwrap();

    stream.send(CoordinatorPayload::LeasesLost(v1::LeasesLost { leases: leases(&[1]) })).await;
    let state = |worker: &RunningWorker| {
        let mut figures = String::new();
        worker.metrics.encode(&mut figures).unwrap();
        figures.contains("arbiter_worker_slots{state=\"recovering\"} 1\n")
    };
    while !state(&worker) {
        tokio::task::yield_now().await;
    }
    assert!(worker.metrics.is_connected(), "it stays connected");
    fs::write(freezer.join("freezer.state"), "THAWED").unwrap();
    assert_eq!(stream.capacity().await, 1, "and has room again");
    assert!(!stream.received.iter().any(|message| matches!(message, Payload::Fault(_))));
    fs::remove_dir(&freezer).unwrap();
    worker.kill(&directory).await;
}
