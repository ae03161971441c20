use super::*;

const FILES: [(&str, &str); 6] = [
    ("Audit", include_str!("../../../../proto/arbiter/v1/audit.proto")),
    ("Bot", include_str!("../../../../proto/arbiter/v1/bot.proto")),
    ("Ranking", include_str!("../../../../proto/arbiter/v1/ranking.proto")),
    ("Token", include_str!("../../../../proto/arbiter/v1/token.proto")),
    ("Tournament", include_str!("../../../../proto/arbiter/v1/tournament.proto")),
    ("Worker", include_str!("../../../../proto/arbiter/v1/worker.proto")),
];

/// The methods that need no token.
const OPEN: [&str; 21] = [
    "CertifyEdition",
    "CheckEdition",
    "GetBot",
    "GetEditionSource",
    "GetHeadToHead",
    "GetHistory",
    "GetMatch",
    "GetPackage",
    "GetRanking",
    "GetRecord",
    "GetReplyTimes",
    "GetRounds",
    "GetStanding",
    "GetStatistics",
    "GetTournament",
    "ListBots",
    "ListMatches",
    "ListSetAside",
    "ListTournaments",
    "WatchEdition",
    "WatchRanking",
];

#[test]
fn every_method_has_a_rule() {
    let mut open = Vec::new();
    for (service, file) in FILES {
        for line in file.lines().filter_map(|line| line.trim().strip_prefix("rpc ")) {
            let method = line.split('(').next().unwrap();
            let rule = rule(&format!("/arbiter.v1.{service}Service/{method}"));
            let large = rule.max_message > MAX_CLIENT_MESSAGE;
            assert_eq!(large, method == "Work", "{method} takes {} bytes", rule.max_message);
            if rule.role.is_none() {
                assert_eq!(rule.max_message, MAX_GUEST_MESSAGE, "{method}");
                open.push(method);
            }
        }
    }
    open.sort_unstable();
    assert_eq!(open, OPEN);
    assert_eq!(rule("/no/such").max_message, MAX_GUEST_MESSAGE);
    assert_eq!(rule("nothing").role, None);
}

fn memory(budgets: &Budgets, shares: &[Arc<Semaphore>]) -> (Memory, Reservation) {
    let reservation = Reservation::default();
    let memory = Memory {
        budgets: budgets.clone(),
        shares: shares.to_vec(),
        reservation: reservation.clone(),
    };
    (memory, reservation)
}

/// Messages that are announced but never sent do not block other addresses.
#[tokio::test]
async fn one_address_takes_no_memory_from_another() {
    let budgets = Budgets::default();
    let open = |address: u8| {
        let key = Key::Address(Some(IpAddr::from([10, 0, 0, address])));
        budgets.begin(&[KeyLimit { key, calls: 9999, bytes: ADDRESS_SHARE }]).unwrap()
    };
    let hostile = open(1);
    let honest = open(2);
    let rule = rule("/arbiter.v1.RankingService/GetRanking");
    let length = u32::try_from(MAX_GUEST_MESSAGE).unwrap();
    let announced = [&[0][..], &length.to_be_bytes()].concat();
    let announce = async |call: &OpenCall| {
        let (memory, reservation) = memory(&budgets, &call.shares());
        let mut body = LimitedBody::new(Body::from(announced.clone()), rule, memory);
        (body.frame().await.unwrap().map(drop).map_err(|status| status.code()), reservation)
    };
    let mut held = Vec::new();
    for _ in 0..GUEST_BUDGET / MAX_GUEST_MESSAGE {
        held.push(announce(&hostile).await);
    }
    let refused = held.iter().filter(|(announced, _)| announced.is_err()).count();
    assert_eq!(held.len() - refused, ADDRESS_SHARE / MAX_GUEST_MESSAGE);
    assert_eq!(announce(&honest).await.0, Ok(()));
}

/// Reads a limited body that arrives in pieces of `piece` bytes.
async fn read(bytes: &[u8], piece: usize, rule: Rule) -> Result<Vec<u8>, Status> {
    let pieces: Vec<_> = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
    let pieces = tokio_stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
    let body = Body::from_stream(pieces);
    let mut body = LimitedBody::new(body, rule, memory(&Budgets::default(), &[]).0);
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        read.extend_from_slice(&frame?.into_data().unwrap());
    }
    Ok(read)
}

#[tokio::test]
async fn messages_pass_unchanged_in_pieces_of_any_size() {
    let rule = rule("/arbiter.v1.RankingService/GetRanking");
    let mut bytes = Vec::new();
    for length in [0_u32, 1, 7, 300, 0, 5] {
        bytes.push(0);
        bytes.extend(length.to_be_bytes());
        bytes.extend((0..length).map(|byte| byte.to_le_bytes()[0]));
    }
    for piece in [1, 2, 3, 5, 6, 11, 1000] {
        assert_eq!(read(&bytes, piece, rule).await.unwrap(), bytes, "in pieces of {piece}");
    }
    let long = [&[0][..], &(1_u32 << 20).to_be_bytes(), &[1; 100]].concat();
    let refused = read(&long, 3, rule).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert!(refused.message().contains("at most 16 KiB"), "{refused}");
}

#[tokio::test]
async fn bytes_are_reserved_while_a_message_is_used() {
    let budgets = Budgets::default();
    let rule = rule("/arbiter.v1.WorkerService/Work");
    let length = 300_u32 << 20;
    let announced = [&[0][..], &length.to_be_bytes()].concat();
    let body = || {
        let (memory, reservation) = memory(&budgets, &[]);
        (LimitedBody::new(Body::from(announced.clone()), rule, memory), reservation)
    };
    let (mut first, used) = body();
    assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), announced);
    let (mut second, _) = body();
    let mut waits = std::pin::pin!(second.frame());
    let pending = std::future::poll_fn(|context| Poll::Ready(waits.as_mut().poll(context)));
    assert!(pending.await.is_pending());
    drop(used.take());
    assert_eq!(waits.await.unwrap().unwrap().into_data().unwrap(), announced);
}

#[test]
fn open_calls_are_counted() {
    let budgets = Budgets::default();
    let limit = |key, calls| KeyLimit { key, calls, bytes: UNIT };
    let keys = [limit(Key::Guests, 3), limit(Key::Address(None), 2)];
    let one = budgets.begin(&keys).unwrap();
    let _two = budgets.begin(&keys).unwrap();
    let refused = budgets.begin(&keys).unwrap_err();
    assert!(refused.message().contains("at most 2 are allowed"), "{refused}");
    drop(one);
    assert!(budgets.begin(&keys).is_ok());
    let callers = budgets.callers.lock().unwrap();
    assert_eq!(callers.get(&Key::Guests).map(|open| open.calls), Some(1));
}
