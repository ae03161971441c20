//! Many readers at once: no page waits for another page's connection to the database.

use std::thread;

use crate::TestServer;

/// More than the server has connections.
const READERS: usize = 48;

#[test]
fn many_readers_at_once_get_every_page() {
    let server = TestServer::open();
    server.up.play("cup");
    let mut organiser = server.browser.clone();
    organiser.log_in(&server.up.admin());
    let pages = [
        "/",
        "/queue",
        "/t/cup",
        "/t/cup/matches",
        "/t/cup/bots",
        "/t/cup/bots/ada",
        "/t/cup/matrix",
        "/t/cup/statistics",
        "/t/cup/how-to-play",
        "/t/cup/about",
        "/t/cup/schedule",
        "/t/cup/matches/0",
        "/api/v1/tournaments/cup",
    ];
    let for_organisers =
        ["/t/cup/submit", "/t/cup/organise", "/t/cup/rehearse", "/t/cup/edit", "/workers"];
    let all = pages.map(|path| (&server.browser, path)).into_iter();
    for (browser, path) in all.chain(for_organisers.map(|path| (&organiser, path))) {
        let statuses: Vec<_> = thread::scope(|scope| {
            let readers: Vec<_> =
                (0..READERS).map(|_| scope.spawn(|| browser.get(path).status)).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        assert_eq!(statuses, [200; READERS], "{path}");
    }
    server.up.close();
}
