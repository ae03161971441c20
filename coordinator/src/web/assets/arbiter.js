// Live updates. Everything else works without scripts.
"use strict";

// The content of a section with `data-live` is replaced by the events of that URL. While the page is
// hidden, the stream is closed, because a browser has few connections per server for all its tabs.
for (const section of document.querySelectorAll("[data-live]")) {
  let source = null;
  let ended = false;
  const connect = () => {
    if (document.hidden || ended) {
      source?.close();
      source = null;
    } else if (source === null) {
      source = new EventSource(section.dataset.live);
      source.addEventListener("fragment", update);
    }
  };
  const update = (event) => {
    // Do not replace content that has the focus.
    const fresh = section.cloneNode(false);
    fresh.innerHTML = event.data;
    if (!section.contains(document.activeElement) && !fresh.isEqualNode(section)) {
      section.replaceChildren(...fresh.childNodes);
    }
    // Nothing changes after the end.
    if (fresh.querySelector("[data-over]")) {
      ended = true;
      connect();
    }
  };
  document.addEventListener("visibilitychange", connect);
  connect();
}

// The link on an invitation has the token in its fragment, which browsers do not send. It fills the
// login form, and leaves the address bar and the history.
const loginToken = document.querySelector("input[data-from-link]");
if (loginToken) {
  const fillFromLink = () => {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!token) return;
    loginToken.value = token;
    history.replaceState(null, "", location.pathname);
    loginToken.form.querySelector("button").focus();
  };
  addEventListener("hashchange", fillFromLink);
  fillFromLink();
}
