// Live numbers, and replays that play. Everything else works without this.
"use strict";

// A section with `data-live` is replaced by what its address sends. While nobody sees the page it
// does not listen: a browser has few connections to a server, for all its tabs together.
for (const section of document.querySelectorAll("[data-live]")) {
  let source = null;
  let over = false;
  const listen = () => {
    if (document.hidden || over) {
      source?.close();
      source = null;
    } else if (source === null) {
      source = new EventSource(section.dataset.live);
      source.addEventListener("fragment", show);
    }
  };
  const show = (event) => {
    // What a reader points at stays where it is until the reader has left it.
    const fresh = section.cloneNode(false);
    fresh.innerHTML = event.data;
    if (!section.contains(document.activeElement) && !fresh.isEqualNode(section)) {
      section.replaceChildren(...fresh.childNodes);
    }
    // What is over does not change any more.
    if (fresh.querySelector("[data-over]")) {
      over = true;
      listen();
    }
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

const replay = document.getElementById("replay");
if (replay) play(replay);

function play(replay) {
  const AHEAD = 25; // steps fetched at a time
  const KEPT = 500; // steps kept
  const last = Number(replay.dataset.total) - 1;
  const stage = replay.querySelector(".stage");
  const player = replay.querySelector(".player");
  const [button, range, speed, output] =
    ["[data-play]", "input", "select", "output"].map((name) => player.querySelector(name));
  const [, back, on] = player.querySelectorAll("a[data-step]");
  const steps = new Map();
  const coming = new Map();
  let shown = Number(range.value);
  let timer = null;
  let wanted = shown;

  function fetchPart(from) {
    if (!coming.has(from)) {
      const part = fetch(`${replay.dataset.steps}?from=${from}&count=${AHEAD}`)
        .then((answer) => { if (!answer.ok) throw new Error(answer.status); return answer.text(); })
        .then((text) => {
          const found = new DOMParser().parseFromString(text, "text/html");
          if (steps.size > KEPT) steps.clear();
          for (const step of found.querySelectorAll("[data-step].step")) {
            steps.set(Number(step.dataset.step), step);
          }
        })
        .finally(() => coming.delete(from));
      coming.set(from, part);
    }
    return coming.get(from);
  }

  async function show(step) {
    wanted = Math.min(Math.max(step, 0), last);
    const index = wanted;
    if (!steps.has(index)) {
      try { await fetchPart(index - (index % AHEAD)); } catch { pause(); return; }
    }
    if (index !== wanted || !steps.has(index)) return;
    shown = index;
    stage.replaceChildren(document.importNode(steps.get(index), true));
    range.value = index;
    output.textContent = `${index} of ${last}`;
    back.dataset.step = Math.max(index - 1, 0);
    on.dataset.step = Math.min(index + 1, last);
    history.replaceState(null, "", `#step=${index}`);
    const next = index - (index % AHEAD) + AHEAD;
    if (next <= last && !steps.has(next)) fetchPart(next).catch(() => {});
  }

  function pause() {
    clearTimeout(timer);
    timer = null;
    button.textContent = "Play";
    stage.setAttribute("aria-live", "polite");
  }

  function run() {
    timer = setTimeout(async () => {
      if (shown >= last) return pause();
      await show(shown + 1);
      if (timer !== null) run();
    }, 1000 / Number(speed.value));
  }

  function start() {
    if (shown >= last) show(0);
    button.textContent = "Pause";
    stage.setAttribute("aria-live", "off");
    run();
  }

  const toggle = () => (timer === null ? start() : pause());
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
    const at = event.target;
    if (event.altKey || event.ctrlKey || event.metaKey || at.closest("input, select, textarea")) return;
    // What is wider than its box is moved by the same keys.
    const box = at.closest("[tabindex]");
    if (box && box.scrollWidth > box.clientWidth) return;
    const keys = { ArrowLeft: wanted - 1, ArrowRight: wanted + 1, Home: 0, End: last };
    if (event.key in keys) { event.preventDefault(); pause(); show(keys[event.key]); }
    if (event.key === " " && !at.closest("button, summary")) { event.preventDefault(); toggle(); }
  });
  const linked = () => /^#step=(\d+)$/.exec(location.hash);
  addEventListener("hashchange", () => { const link = linked(); if (link) show(Number(link[1])); });
  for (const hidden of player.querySelectorAll("[hidden]")) hidden.hidden = false;
  const link = linked();
  if (link) show(Number(link[1]));
}
