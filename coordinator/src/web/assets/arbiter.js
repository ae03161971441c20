// Live updates and countdowns. Everything else works without scripts.
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

// Deadlines: the time that is left. The browser's clock may be wrong, so the time is that of the server when
// it sent the page, and what has passed since. Without seconds if motion shall be reduced.
const deadlines = document.querySelectorAll("[data-deadline]");
if (deadlines.length > 0) {
  const [navigation] = performance.getEntriesByType("navigation");
  const sentAt = Date.now() - performance.now() + (navigation?.responseStart ?? 0);
  const ahead = Number(deadlines[0].dataset.now) - sentAt;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const countDown = () => {
    for (const deadline of document.querySelectorAll("[data-deadline]")) {
      const left = deadline.querySelector("time:last-of-type");
      const seconds = Math.ceil((Date.parse(left.dateTime) - Date.now() - ahead) / 1000);
      if (seconds <= 0) {
        deadline.textContent = deadline.dataset.deadline;
        delete deadline.dataset.deadline;
      } else if (left.textContent !== remaining(seconds, still.matches)) {
        left.textContent = remaining(seconds, still.matches);
      }
    }
  };
  setInterval(countDown, 1000);
  countDown();
}

function remaining(seconds, still) {
  const whole = (unit) => Math.floor(seconds / unit);
  if (seconds < 60) return still ? "in less than a minute" : `in ${seconds} s`;
  if (seconds < 3600) return still ? `in ${whole(60)} min` : `in ${whole(60)} min ${seconds % 60} s`;
  if (seconds < 172800) return `in ${whole(3600)} h ${whole(60) % 60} min`;
  return `in ${whole(86400)} days ${whole(3600) % 24} h`;
}
