// Keep an open page current: take the parts that changed from the stream and put them in place, but never
// under the cursor. Without the stream the page is asked for every five seconds.
(() => {
  "use strict";
  const button = document.querySelector("#live");
  if (!button || button.dataset.refresh === "off") {
    if (button) { button.hidden = false; button.classList.add("off"); button.disabled = true; button.querySelector("span").textContent = "Not live"; }
    return;
  }
  button.hidden = false;
  const label = button.querySelector("span");
  const stale = document.querySelector("#stale");
  const root = document.body.dataset.root;
  const waiting = new Map(); // parts that came while they could not be shown
  const newest = new Map(); // what came last of each part
  let source = null;
  let last = "";
  let isPaused = false;
  let changes = 0;
  let pausedAt = null;
  let staleSince = null; // a Date, if what is shown may be old
  let problem = "";
  let heardAt = Date.now();
  let shownAt = new Date();
  let isGone = false;
  let isCut = false; // whether the stream was lost and has not come back
  let polledAt = 0;

  // ── putting a part in place ───────────────────────────────────────────
  const kept = { DETAILS: ["open"], INPUT: ["checked", "value"], TIME: [], TR: ["aria-selected"] };
  const options = {
    morphStyle: "outerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeAttributeUpdated: (name, node) => !(kept[node.tagName]?.includes(name) || name === "hidden"),
    },
  };
  const parse = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  const isBusy = (element) =>
    element.querySelector("details.do[open], [data-select]:checked, [data-row]:hover, [data-row]:focus-within, input:focus, textarea:focus, select:focus");
  // A list takes no new rows by itself, as it would move under the cursor: it says how many there are.
  const keepRows = (element, next) => {
    const here = new Set([...element.querySelectorAll("[data-row]")].map((row) => row.id));
    const rows = [...next.querySelectorAll("[data-row]")];
    if (!here.size || !rows.length) return next;
    const known = rows.filter((row) => here.has(row.id));
    const first = known[0] ? rows.indexOf(known[0]) : rows.length;
    showNewer(element, first, !known.length);
    const sent = new Map(known.map((row) => [row.id, row]));
    const merged = element.cloneNode(true);
    let isBehind = false; // whether a row that is still there follows
    for (const row of [...merged.querySelectorAll("[data-row]")].reverse()) {
      if (sent.has(row.id)) { row.replaceWith(sent.get(row.id)); isBehind = true; }
      else if (isBehind) row.classList.add("gone");
    }
    return merged;
  };
  const showNewer = (element, count, isAll) => {
    const said = document.querySelector(`[data-newer="${element.id}"]`);
    if (!said) return;
    said.hidden = !count;
    said.textContent = `${count}${isAll ? " or more" : ""} newer: show`;
  };
  const show = (id, html) => {
    const element = document.getElementById(id);
    if (!element) return;
    let next = parse(html);
    if (element.hasAttribute("data-list")) next = keepRows(element, next);
    Idiomorph.morph(element, next, options);
    document.getElementById(id)?.dispatchEvent(new CustomEvent("fairlane:morphed", { bubbles: true }));
  };
  const showWaiting = () => {
    if (isPaused || document.hidden) return;
    for (const [id, html] of [...waiting]) {
      const element = document.getElementById(id);
      if (element && isBusy(element)) continue;
      waiting.delete(id);
      show(id, html);
    }
    if (!waiting.size) changes = 0;
    say();
  };
  const take = (parts) => {
    for (const [id, html] of Object.entries(parts)) {
      if (newest.get(id) === html) continue;
      newest.set(id, html);
      waiting.set(id, html);
      changes += 1;
    }
    showWaiting();
  };

  // ── what the button and the note say ──────────────────────────────────
  const time = (date) => date.toLocaleTimeString("en-GB", { timeZone: document.body.dataset.timeZone });
  const age = (date) => {
    const seconds = Math.max(0, Math.round((Date.now() - date) / 1000));
    return seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
  };
  const say = () => {
    button.setAttribute("aria-pressed", String(isPaused));
    button.classList.toggle("off", Boolean(staleSince) || isPaused || isGone);
    button.title = isPaused ? "Continue (p)" : `Pause changes of this page (p)${isCut ? ". The stream was lost; the page is asked for instead" : ""}`;
    const many = `${changes} change${changes === 1 ? "" : "s"}`;
    const text = isGone ? "Ended" : staleSince ? `Stale, ${age(staleSince)}` : isPaused ? `Paused, ${many} since ${time(pausedAt)}`
      : waiting.size ? `${many} waiting` : isCut ? "Every 5 s" : "Live";
    if (label.textContent !== text) label.textContent = text;
    if (staleSince) stale.textContent = `${problem} What you see is ${age(staleSince)} old.`;
    stale.hidden = !staleSince && !isGone;
    document.querySelector("#main").classList.toggle("is-stale", Boolean(staleSince));
  };
  const becomeStale = (since, why) => { staleSince ??= since; problem = why; say(); };
  const becomeFresh = () => { staleSince = null; shownAt = new Date(); say(); };
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    pausedAt = new Date();
    changes = waiting.size;
    if (!isPaused) showWaiting();
    say();
  });

  // ── the stream ────────────────────────────────────────────────────────
  const connect = () => {
    if (source || isGone) return;
    const query = new URLSearchParams({ page: button.dataset.page, last });
    source = new EventSource(`${root}/live?${query}`);
    source.onopen = () => { isCut = false; heardAt = Date.now(); };
    const on = (name, act) => source.addEventListener(name, (event) => {
      heardAt = Date.now();
      if (event.lastEventId) last = event.lastEventId;
      act(JSON.parse(event.data));
    });
    on("patch", (data) => { becomeFresh(); take(data.parts); });
    on("ping", () => becomeFresh());
    on("fresh", () => becomeFresh());
    on("stale", (data) => becomeStale(data.since ? new Date(data.since) : shownAt, "The store does not answer."));
    on("gone", end);
    source.onerror = () => { isCut = true; poll(); };
  };
  const disconnect = () => { source?.close(); source = null; };
  const end = () => {
    isGone = true;
    disconnect();
    stale.textContent = "This page is no longer there, or no longer yours to see. Reload it.";
    say();
  };
  const poll = async () => {
    if (isGone || document.hidden || Date.now() - polledAt < 4000) return;
    polledAt = Date.now();
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.redirected || [401, 403, 404].includes(response.status)) return end();
      if (response.status === 503) return becomeStale(shownAt, "The store does not answer.");
      if (!response.ok) throw new Error(response.status);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const parts = {};
      for (const part of page.querySelectorAll("[data-live][id]")) parts[part.id] = part.outerHTML;
      becomeFresh();
      take(parts);
    } catch { becomeStale(shownAt, "No connection to the server."); }
  };
  setInterval(() => {
    if (document.hidden) return;
    if (waiting.size) showWaiting(); else say();
    if (!staleSince && !isGone && Date.now() - heardAt > 40000) becomeStale(new Date(heardAt), "Nothing was heard from the server.");
  }, 500);
  setInterval(() => {
    if (isGone || document.hidden) return;
    if (!source || source.readyState === EventSource.CLOSED) { disconnect(); connect(); }
    if (isCut || Date.now() - heardAt > 40000) poll();
  }, 5000);
  document.addEventListener("click", (event) => {
    const newer = event.target.closest("[data-newer]");
    if (newer) location.reload();
  });
  // A hidden tab listens to nothing: browsers allow few connections, and what it missed comes when it is shown.
  document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else { heardAt = Date.now(); connect(); } });
  window.addEventListener("pagehide", disconnect);
  if (!document.hidden) connect();
})();
