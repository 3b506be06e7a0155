// Keys, small forms, ages and selection. Every page can be read and its forms be sent without this file.
(() => {
  "use strict";
  const root = document.documentElement;
  const body = document.body;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const isWriting = (element) => element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

  // ── ages ──────────────────────────────────────────────────────────────
  // A time with data-age is shown by its distance from now. The server writes the time itself, so what it
  // sends changes only if the facts do.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const words = (seconds) => {
    for (const [index, [size, unit]] of units.entries()) {
      if (seconds < size && size > 1) continue;
      const whole = Math.floor(seconds / size);
      const next = units[index + 1];
      const part = next && size < 86400 && whole < 10 ? Math.floor((seconds % size) / next[0]) : 0;
      return `${whole} ${unit}` + (part ? ` ${part} ${next[1]}` : "");
    }
    return "0 s";
  };
  const showAges = (within = document) => {
    for (const time of all("time[data-age]", within)) {
      const seconds = (Date.now() - new Date(time.dateTime)) / 1000;
      const text = seconds >= 0 ? `${words(seconds)} ago` : `in ${words(-seconds)}`;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  showAges();
  setInterval(() => { if (!document.hidden) showAges(); }, 1000);
  document.addEventListener("fairlane:morphed", (event) => showAges(event.target));

  // ── forms behind buttons ──────────────────────────────────────────────
  const openForm = () => document.querySelector("details.do[open]");
  const close = (form) => { form.open = false; form.querySelector("summary").focus(); };
  for (const button of all("[data-close]")) button.hidden = false;
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.do") && event.target.open)
      event.target.querySelector("textarea, input:not([type=hidden])")?.focus();
  }, true);
  document.addEventListener("click", (event) => {
    const form = openForm();
    if (event.target.closest("[data-close]")) close(event.target.closest("details"));
    else if (form && !form.contains(event.target)) form.open = false;
    const copy = event.target.closest("[data-copy]");
    if (copy) copyText(copy.dataset.copy, copy);
  });

  // ── what is said once ─────────────────────────────────────────────────
  const say = (text) => {
    document.querySelector(".toast")?.remove();
    const toast = document.createElement("p");
    toast.className = "toast";
    toast.setAttribute("role", "status");
    toast.textContent = text;
    body.append(toast);
    setTimeout(() => toast.remove(), 4000);
  };
  const copyText = async (text) => {
    try { await navigator.clipboard.writeText(text); say(`Copied ${text}`); }
    catch { say("The browser does not allow copying here"); }
  };

  // ── theme: at once here, and for the next page in a cookie ────────────
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form.theme");
    if (!form) return;
    event.preventDefault();
    const field = form.elements.theme;
    const theme = field.value;
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    field.value = { system: "dark", dark: "light", light: "system" }[theme];
    form.querySelector("button").title = `Theme: ${theme} (t)`;
    form.querySelector("button").ariaLabel = `Theme: ${theme}. Switch`;
    await fetch(form.action, { method: "POST", redirect: "manual", body: new URLSearchParams({ theme }) });
  });

  // ── rows: moving and selecting ────────────────────────────────────────
  const rows = () => all("[data-row]");
  const row = () => document.activeElement?.closest("[data-row]");
  const move = (step) => {
    const list = rows();
    const next = list[Math.max(0, Math.min(list.length - 1, list.indexOf(row()) + step))];
    (next?.querySelector("a[href]") ?? next)?.focus();
  };
  const boxes = () => all("[data-select]");
  const showSelection = () => {
    const chosen = boxes().filter((box) => box.checked);
    for (const box of boxes()) box.closest("[data-row]").ariaSelected = box.checked;
    const everything = document.querySelector("[data-select-page]");
    if (everything) everything.checked = chosen.length > 0 && chosen.length === boxes().length;
    for (const said of all("[data-chosen]")) said.textContent = chosen.length;
    for (const bar of all("[data-bulk]")) bar.hidden = !chosen.length;
    for (const field of all("[data-ids]")) field.value = "id:" + chosen.map((box) => box.value).join(",");
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-page]"))
      for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("[data-select], [data-select-page]")) showSelection();
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("fairlane:morphed", showSelection);
  showSelection();
  for (const part of all("[data-script]")) part.hidden = false;
  const zone = document.querySelector("[data-zone]");
  if (zone) {
    zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    zone.form.hidden = false;
    zone.form.querySelector("b").textContent = zone.value;
  }

  // ── keys ──────────────────────────────────────────────────────────────
  const step = (by) => {
    const tabs = all(".tabs a");
    const here = tabs.findIndex((tab) => tab.hasAttribute("aria-current"));
    tabs[here + by]?.click();
  };
  const keys = {
    "/": () => { const find = document.querySelector(".query input, .find input"); find.focus(); find.select(); },
    j: () => move(1),
    k: () => move(-1),
    x: () => row()?.querySelector("[data-select]")?.click(),
    A: () => document.querySelector(".bulk > details.do > summary")?.click(),
    y: () => { const id = row()?.dataset.row || document.querySelector("[data-id]")?.dataset.id; if (id) copyText(id); },
    t: () => document.querySelector("form.theme").requestSubmit(),
    p: () => document.querySelector("#live")?.click(),
    "[": () => step(-1),
    "]": () => step(1),
    "?": () => document.querySelector("a.help").click(),
  };
  let isGoing = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      const form = openForm();
      if (form) close(form); else document.activeElement?.blur();
      return;
    }
    if (body.dataset.keys === "off" || isWriting(event.target)) return;
    if (isGoing && Date.now() - isGoing < 1500) {
      isGoing = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "g") { isGoing = Date.now(); return; }
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
