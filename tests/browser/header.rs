//! The header of pages on a phone.

use crate::chrome::Chrome;
use crate::test_server::TestServer;

/// A narrow phone, in CSS pixels.
const PHONE: (u32, u32) = (360, 740);

#[test]
fn a_long_name_in_the_header_fits_a_phone() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::empty();
    let token = server.up.token(&format!("player --name {}", "W".repeat(64)));
    chrome.size(PHONE.0, PHONE.1);
    server.visit(&chrome, "/login");
    chrome.type_into("#token", &token);
    chrome.click("main form button");
    chrome.wait("the login is done", "return location.pathname !== '/login'");
    for path in ["/", "/me", "/queue"] {
        server.visit(&chrome, path);
        let width = chrome.run("return document.documentElement.scrollWidth");
        assert_eq!(width, PHONE.0, "{path}");
        for part in ["a.me", "a.me .quiet", "header form button"] {
            let body = "const box = document.querySelector(argument).getBoundingClientRect();
                return box.left >= 0 && box.right <= innerWidth && box.width > 20;";
            assert_eq!(chrome.call(body, &part.into()), true, "{path}: {part}");
        }
    }
}
