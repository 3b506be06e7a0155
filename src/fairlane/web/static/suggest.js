// Completion of a query: fields, states and names that begin as the word at the cursor does.
(() => {
  "use strict";
  const most = 10;
  const input = document.querySelector("input[data-suggest]");
  const list = input && document.getElementById(input.dataset.suggest);
  if (!list) return;
  const options = [...list.children];
  options.forEach((option, index) => { option.id = `${list.id}-${index}`; });
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  input.ariaExpanded = "false";

  // A word ends at a space or a parenthesis outside of quotes; a minus before it belongs to the query.
  const word = () => {
    const before = input.value.slice(0, input.selectionStart);
    return /(?:"(?:[^"\\]|\\.)*"?|[^\s()"])*$/.exec(before)[0].replace(/^-/, "");
  };
  const shown = () => options.filter((option) => !option.hidden);
  const chosen = () => shown().find((option) => option.ariaSelected === "true");
  const choose = (option) => {
    for (const one of options) one.removeAttribute("aria-selected");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const hide = () => { list.hidden = true; input.ariaExpanded = "false"; choose(null); };
  const show = () => {
    const typed = word().toLowerCase();
    let left = most;
    for (const option of options) {
      const value = option.dataset.value.toLowerCase();
      option.hidden = !typed || value === typed || !value.startsWith(typed) || left-- <= 0;
    }
    list.hidden = !shown().length;
    input.ariaExpanded = String(!list.hidden);
    choose(null);
  };
  const take = (option) => {
    const value = option.dataset.value;
    const end = input.selectionStart;
    const start = end - word().length;
    const text = value.endsWith(":") ? value : `${value} `;
    input.setRangeText(text, start, end, "end");
    input.focus();
    if (value.endsWith(":")) show(); else hide();
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", hide);
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const there = shown();
    const here = there.indexOf(chosen());
    if (event.key === "ArrowDown") choose(there[(here + 1) % there.length]);
    else if (event.key === "ArrowUp") choose(there[(here <= 0 ? there.length : here) - 1]);
    else if (event.key === "Tab" && !event.shiftKey) take(chosen() ?? there[0]);
    else if (event.key === "Enter" && chosen()) take(chosen());
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // On press, not on click: the field must not lose the focus before.
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("li");
    if (option) { event.preventDefault(); take(option); }
  });
})();
