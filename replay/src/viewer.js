// The replay viewer: steps, chapters and playback. It gets the steps as chunks, from a server or
// from the page itself. Without this script each step is a page.
"use strict";

for (const section of document.querySelectorAll("#replay")) startViewer(section);

function startViewer(replay) {
  const STEPS_PER_CHUNK = Number(replay.dataset.chunk);
  const MAX_CHUNKS = 100;
  // The chunks that are loaded before they are needed. Playback may need many in a second.
  const CHUNKS_AHEAD = 1;
  const CHUNKS_AHEAD_PLAYING = 4;
  // A page that was not drawn for so long does not catch up, in milliseconds.
  const MAX_PAUSE = 1000;
  // Browsers refuse to change the address more often, in milliseconds.
  const ADDRESS_DELAY = 400;
  // How long the last step is shown before the next page, in milliseconds.
  const NEXT_PAGE_DELAY = 8000;
  // How long a failed request waits before it is sent again, in milliseconds, each time up to a
  // half longer by chance: many viewers of one server do not return at the same moment.
  const RETRY_DELAYS = [500, 1000, 2000, 4000];
  // After this time a viewer that plays by itself tries again, in milliseconds.
  const AUTOPLAY_RETRY_DELAY = 30000;
  // A step that takes longer is announced, in milliseconds.
  const SLOW = 400;
  const last = Number(replay.dataset.total) - 1;
  const find = (selector) => replay.querySelector(selector);
  const view = find(".step-view");
  const button = find("[data-play]");
  const range = find("input[type=range]");
  const output = find("output");
  const speed = find(".speed select");
  const chapter = find(".chapter select");
  const link = find("[data-link]");
  const keys = find(".keys");
  const links = [...replay.querySelectorAll("[data-to]")];
  const targets = Object.fromEntries(links.map((a) => [a.dataset.to, a]));
  const chapters = chapter ? [...chapter.options].map((option) => Number(option.value)) : [];
  // Decoded chunks by number, the least recently used first; and those that are on their way.
  const ready = new Map();
  const pending = new Map();
  // The errors of the chunks that a step waited for in vain. Only the button of the message
  // requests them again.
  const failed = new Map();
  // The chunks that could not be loaded ahead. They are requested again when a step needs them.
  const failedAhead = new Set();
  const [trouble, reload] = troubleMessage();
  let troubled = 0;
  let current = Number(range.value);
  let requested = current;
  let playing = null;
  let addressTimer = null;

  async function packed(number) {
    if (replay.dataset.chunks === undefined) {
      const text = document.getElementById(`chunk-${number}`).textContent;
      return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    }
    const response = await fetch(replay.dataset.chunks + number);
    if (!response.ok) {
      // Other errors will not go away.
      const mayPass = response.status >= 500 || response.status === 429;
      const details = { status: response.status, isFinal: !mayPass };
      throw Object.assign(new Error(response.status), details);
    }
    return response.arrayBuffer();
  }

  // Chunks of the page itself do not change, so a second attempt is useless.
  async function decodeWithRetries(number) {
    for (const delay of replay.dataset.chunks === undefined ? [] : RETRY_DELAYS) {
      try {
        return await decode(number);
      } catch (error) {
        if (error.isFinal) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, delay * (1 + Math.random() / 2)));
    }
    return decode(number);
  }

  async function decode(number) {
    const blob = new Blob([await packed(number)]);
    const stream = blob.stream().pipeThrough(new DecompressionStream("gzip"));
    const [first, ...changes] = await new Response(stream).json();
    const steps = [first];
    for (const operations of changes) steps.push(change(steps[steps.length - 1], operations));
    return steps;
  }

  // The HTML of a step, from that of the step before.
  function change(before, operations) {
    let after = "";
    let at = 0;
    for (const operation of operations) {
      if (typeof operation === "string") {
        after += operation;
      } else {
        if (operation > 0) after += before.slice(at, at + operation);
        at += Math.abs(operation);
      }
    }
    return after + before.slice(at);
  }

  function load(number) {
    if (!pending.has(number)) {
      const loading = decodeWithRetries(number)
        .then((steps) => {
          ready.set(number, steps);
          failedAhead.delete(number);
          if (ready.size > MAX_CHUNKS) ready.delete(ready.keys().next().value);
        })
        .finally(() => pending.delete(number));
      pending.set(number, loading);
    }
    return pending.get(number);
  }

  // The HTML of a step, if its chunk is here. The next chunks are loaded meanwhile.
  function html(index) {
    const number = Math.floor(index / STEPS_PER_CHUNK);
    const steps = ready.get(number);
    if (!steps) return undefined;
    ready.delete(number);
    ready.set(number, steps);
    const ahead = number + (playing ? CHUNKS_AHEAD_PLAYING : CHUNKS_AHEAD);
    for (let next = number + 1; next <= ahead && next * STEPS_PER_CHUNK <= last; next += 1) {
      if (!ready.has(next) && !failed.has(next) && !failedAhead.has(next)) {
        load(next).catch(() => failedAhead.add(next));
      }
    }
    return steps[index % STEPS_PER_CHUNK];
  }

  function draw(index, markup) {
    current = index;
    trouble.remove();
    view.innerHTML = markup;
    range.value = index;
    output.textContent = `Step ${index} of ${last}`;
    targets.previous.dataset.step = Math.max(index - 1, 0);
    targets.next.dataset.step = Math.min(index + 1, last);
    if (!chapter) return;
    const place = chapters.findLastIndex((first) => first <= index);
    targets.back.dataset.step = chapters.findLast((first) => first < index) ?? 0;
    targets.on.dataset.step = chapters[place + 1] ?? last;
    if (chapter.selectedIndex !== place) chapter.selectedIndex = place;
  }

  async function show(step) {
    requested = Math.min(Math.max(step, 0), last);
    const index = requested;
    if (html(index) === undefined) {
      const number = Math.floor(index / STEPS_PER_CHUNK);
      const slow = setTimeout(() => {
        if (index === requested) output.textContent = "Loading …";
      }, SLOW);
      if (!failed.has(number)) await load(number).catch((error) => failed.set(number, error));
      clearTimeout(slow);
      if (failed.has(number)) {
        if (index === requested) fail(index, failed.get(number));
        return;
      }
    }
    const markup = html(index);
    if (index !== requested || markup === undefined) return;
    draw(index, markup);
    if (!playing) nameStep();
  }

  // Says that a step cannot be loaded. The step before it remains in view. The address keeps the
  // step that failed, so that loading the page again leads to it.
  function fail(index, error) {
    pause();
    nameStep(index);
    troubled = index;
    requested = current;
    range.value = current;
    output.textContent = `Step ${current} of ${last}`;
    let cause = "";
    if (error.status) cause = `The server refused the request (status ${error.status}). `;
    else if (replay.dataset.chunks !== undefined) cause = "Check your connection. ";
    trouble.firstChild.textContent = `Step ${index} could not be loaded. ${cause}`;
    reload.hidden = !error.status;
    view.before(trouble);
    if (replay.dataset.next) setTimeout(playAgain, AUTOPLAY_RETRY_DELAY);
  }

  function tryAgain() {
    failed.clear();
    failedAhead.clear();
    trouble.remove();
    return show(troubled);
  }

  async function playAgain() {
    if (!trouble.isConnected || playing) return;
    await tryAgain();
    if (!trouble.isConnected) play();
  }

  function troubleMessage() {
    const message = document.createElement("p");
    message.className = "error-message";
    message.setAttribute("role", "alert");
    const action = (label, run) => {
      const element = document.createElement("button");
      element.type = "button";
      element.textContent = label;
      element.addEventListener("click", run);
      return element;
    };
    const again = action("Try again", () => tryAgain());
    const load = action("Reload the page", () => location.reload());
    message.append("", again, " ", load);
    return [message, load];
  }

  // Puts the step in view into the link, and a step into the address.
  function nameStep(addressed = current) {
    // Without scripts, a server reads the query instead.
    const query = replay.dataset.chunks === undefined ? "" : `?step=${current}`;
    link.href = `${replay.dataset.page}${query}#step=${current}`;
    clearTimeout(addressTimer);
    const name = () => history.replaceState(null, "", `#step=${addressed}`);
    addressTimer = setTimeout(name, ADDRESS_DELAY);
  }

  function pause() {
    if (playing) cancelAnimationFrame(playing.frame);
    playing = null;
    button.textContent = "Play";
    view.setAttribute("aria-live", "polite");
    nameStep();
  }

  async function play() {
    button.textContent = "Pause";
    view.setAttribute("aria-live", "off");
    const run = { frame: 0 };
    playing = run;
    if (current >= last) await show(0);
    if (playing !== run) return;
    // At `began` the step `from` was shown.
    let from = current;
    let began = performance.now();
    let drawn = began;
    let rate = Number(speed.value);
    const next = async (now) => {
      if (Number(speed.value) !== rate || now - drawn > MAX_PAUSE) {
        from = current;
        began = now;
        rate = Number(speed.value);
      }
      drawn = now;
      const due = Math.min(from + Math.max(Math.floor(((now - began) * rate) / 1000), 0), last);
      if (due !== current) await show(due);
      if (playing !== run) return;
      if (current >= last) return end();
      run.frame = requestAnimationFrame(next);
    };
    run.frame = requestAnimationFrame(next);
  }

  function end() {
    pause();
    const leave = () => { if (!playing) location.assign(replay.dataset.next); };
    if (replay.dataset.next) setTimeout(leave, NEXT_PAGE_DELAY);
  }

  const jump = (step) => { pause(); show(Number(step)); };
  const toggle = () => (playing ? pause() : play());
  button.addEventListener("click", toggle);
  range.addEventListener("input", () => jump(range.value));
  chapter?.addEventListener("change", () => jump(chapter.value));
  document.addEventListener("click", (event) => {
    const target = event.target.closest("a[data-step]");
    if (!target || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    jump(target.dataset.step);
    if (!replay.contains(target)) replay.scrollIntoView();
  });
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (target.closest("input, select, textarea")) return;
    // The same keys scroll a box whose content is wider.
    const box = target.closest("[tabindex]");
    if (box && box.scrollWidth > box.clientWidth) return;
    const back = targets.back?.dataset.step;
    const on = targets.on?.dataset.step;
    const steps = event.shiftKey
      ? { ArrowLeft: back, ArrowRight: on }
      : {
        ArrowLeft: requested - 1,
        ArrowRight: requested + 1,
        PageUp: back,
        PageDown: on,
        Home: 0,
        End: last,
      };
    if (steps[event.key] !== undefined) { event.preventDefault(); jump(steps[event.key]); }
    if (event.key === " " && !target.closest("button, summary, a")) {
      event.preventDefault();
      toggle();
    }
    if (event.key === "?") { event.preventDefault(); keys.open = !keys.open; }
  });
  const stepInHash = () => /^#step=(\d+)$/.exec(location.hash);
  addEventListener("hashchange", () => { const match = stepInHash(); if (match) jump(match[1]); });
  for (const hidden of replay.querySelectorAll("[hidden]")) hidden.hidden = false;
  const match = stepInHash();
  if (match) show(Number(match[1]));
  if (replay.dataset.next) play();
}
