//! The names of the components of a score, wherever scores of several components are shown.

use std::path::Path;

use crate::TestServer;
use crate::browser::text;

#[test]
fn pages_and_commands_name_the_components_of_scores() {
    let server = TestServer::open();
    let up = &server.up;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/othello");
    up.create(&format!("name = \"discs\"\ngame = \"{}\"\n", package.display()));
    up.play("discs");
    let page = server.browser.page("/t/discs/matches");
    assert!(text(&page).contains("Seats and scores (Points, Discs)"), "{page}");
    for (path, element) in [
        ("/t/discs/matches/0", "th class=\"number\" scope=\"col\""),
        ("/t/discs/bots/greedy", "dt"),
    ] {
        let page = server.browser.page(path);
        for component in ["Points", "Discs"] {
            assert!(page.contains(&format!("<{element}>{component}</")), "{path}: {page}");
        }
    }
    for command in ["match discs/0", "log discs greedy", "ranking discs --bot greedy"] {
        let output = up.succeed(command);
        assert!(output.contains("score (points discs)"), "{command}: {output}");
    }
    // A single component needs no name.
    up.play("cup");
    assert!(!server.browser.page("/t/cup/matches/0").contains("(Points)"));
    server.up.close();
}
