//! The login link of an invitation in a real browser.

use crate::chrome::Chrome;
use crate::test_server::TestServer;

#[test]
fn the_link_of_an_invitation_fills_in_the_token_and_hides_it() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::empty();
    let token = server.up.token("player --name ada");
    chrome.open(&format!("{}/login#token={token}", server.pages));
    chrome.wait("the token is filled in", "return document.querySelector('#token').value !== ''");
    assert_eq!(chrome.run("return document.querySelector('#token').value"), token.as_str());
    assert_eq!(chrome.address(), format!("{}/login", server.pages), "nor is it in the history");
    chrome.click("main form button");
    chrome.wait("the login is done", "return location.pathname !== '/login'");
    assert_eq!(chrome.text("header a.me bdi"), "ada");
}
