// Live updates and playback of replays. Everything else works without scripts.
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

const replay = document.getElementById("replay");
if (replay) startViewer(replay);

function startViewer(replay) {
  const STEPS_PER_FETCH = 25;
  const MAX_CACHED_STEPS = 500;
  const last = Number(replay.dataset.total) - 1;
  const view = replay.querySelector(".step-view");
  const player = replay.querySelector(".player");
  const [button, range, speed, output] =
    ["[data-play]", "input", "select", "output"].map((name) => player.querySelector(name));
  const [, previous, next] = player.querySelectorAll("a[data-step]");
  const steps = new Map();
  const pending = new Map();
  let current = Number(range.value);
  let timer = null;
  let requested = current;

  function fetchPart(from) {
    if (!pending.has(from)) {
      const part = fetch(`${replay.dataset.steps}?from=${from}&count=${STEPS_PER_FETCH}`)
        .then((response) => { if (!response.ok) throw new Error(response.status); return response.text(); })
        .then((text) => {
          const parsed = new DOMParser().parseFromString(text, "text/html");
          if (steps.size > MAX_CACHED_STEPS) steps.clear();
          for (const step of parsed.querySelectorAll("[data-step].step")) {
            steps.set(Number(step.dataset.step), step);
          }
        })
        .finally(() => pending.delete(from));
      pending.set(from, part);
    }
    return pending.get(from);
  }

  async function show(step) {
    requested = Math.min(Math.max(step, 0), last);
    const index = requested;
    if (!steps.has(index)) {
      try { await fetchPart(index - (index % STEPS_PER_FETCH)); } catch { pause(); return; }
    }
    if (index !== requested || !steps.has(index)) return;
    current = index;
    view.replaceChildren(document.importNode(steps.get(index), true));
    range.value = index;
    output.textContent = `${index} of ${last}`;
    previous.dataset.step = Math.max(index - 1, 0);
    next.dataset.step = Math.min(index + 1, last);
    history.replaceState(null, "", `#step=${index}`);
    const nextPart = index - (index % STEPS_PER_FETCH) + STEPS_PER_FETCH;
    if (nextPart <= last && !steps.has(nextPart)) fetchPart(nextPart).catch(() => {});
  }

  function pause() {
    clearTimeout(timer);
    timer = null;
    button.textContent = "Play";
    view.setAttribute("aria-live", "polite");
  }

  function scheduleNext() {
    timer = setTimeout(async () => {
      if (current >= last) return pause();
      await show(current + 1);
      if (timer !== null) scheduleNext();
    }, 1000 / Number(speed.value));
  }

  function play() {
    if (current >= last) show(0);
    button.textContent = "Pause";
    view.setAttribute("aria-live", "off");
    scheduleNext();
  }

  const toggle = () => (timer === null ? play() : pause());
  button.addEventListener("click", toggle);
  range.addEventListener("input", () => { pause(); show(Number(range.value)); });
  replay.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-step]");
    if (!link) return;
    event.preventDefault();
    pause();
    show(Number(link.dataset.step));
  });
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.altKey || event.ctrlKey || event.metaKey || target.closest("input, select, textarea")) return;
    // The same keys scroll a box whose content is wider.
    const box = target.closest("[tabindex]");
    if (box && box.scrollWidth > box.clientWidth) return;
    const keys = { ArrowLeft: requested - 1, ArrowRight: requested + 1, Home: 0, End: last };
    if (event.key in keys) { event.preventDefault(); pause(); show(keys[event.key]); }
    if (event.key === " " && !target.closest("button, summary")) { event.preventDefault(); toggle(); }
  });
  const stepInHash = () => /^#step=(\d+)$/.exec(location.hash);
  addEventListener("hashchange", () => { const match = stepInHash(); if (match) show(Number(match[1])); });
  for (const hidden of player.querySelectorAll("[hidden]")) hidden.hidden = false;
  const match = stepInHash();
  if (match) show(Number(match[1]));
}
