// What the pages do beyond what HTML does; every page works without it. By data attributes:
//   data-search           "/" moves here
//   data-palette          a link that opens the search dialog, as Ctrl+K does
//   data-send             Ctrl+Enter sends this form from wherever one is (else the form one is in)
//   data-copy="#id"       a button that copies an element's text, data-copy-text="…" a given one
//   data-copy-link        a button that copies the address of the page
//   data-first-error      where the focus goes when a form comes back with problems
//   data-check-all="name" a checkbox that ticks all checkboxes of this name in its form
//   data-import="12"      a button that imports so many flags less those ticked to be excluded (data-exclude="create")
//   data-carry            a list whose ticks go along to its other pages
//   data-bulk="name"      a form that tells the number of ticked checkboxes of this name
//   data-needs="name"     a button that is off until a checkbox of this name in its form is ticked
//   data-tidy             a form whose empty fields stay out of the address
//   data-live             a form of filters that apply while one types (includes/live.html)
//   data-add="#template"  a button that appends the template's content before itself
//   data-chips            a text area with one value per line, shown as chips
//   data-open="#id"       a button that opens a dialog
//   data-dismiss          a button that takes its message away; no message goes by itself, an Undo may be in it
//   data-modal            a dialog that is open when the page comes
//   data-slider="#id"     a slider of this number field
//   data-sideways         a table that says how many of its columns are out of sight, and moves to them
//   data-time="minute"    a time that is shown in the browser's zone
//   data-utc              a time input whose value is sent in UTC and shown in the browser's zone
//   data-enable-after="9" a button that works again after so many seconds, and what describes it goes
"use strict";

const find = (selector, within = document) => within.querySelector(selector);

function show(root = document) {
  for (const hidden of root.querySelectorAll("[data-copy], [data-copy-text], [data-copy-link], [data-add], [data-check-all], [data-open], [data-dismiss]"))
    hidden.hidden = false;
  for (const area of root.querySelectorAll("[data-chips]")) showChips(area);
  for (const slider of root.querySelectorAll("[data-slider]")) startSlider(slider);
  for (const time of root.querySelectorAll("time[data-time]")) showInZone(time);
  for (const input of root.querySelectorAll("[data-utc]")) sendInUtc(input);
  for (const box of root.querySelectorAll("[data-sideways]")) showFurther(box);
  for (const tab of root.querySelectorAll(".tabs [aria-current]")) showTab(tab, tab.parentNode);
}

// The current tab is in view on a narrow screen, with a bit of the next one.
function showTab(tab, tabs) {
  const hidden = tab.getBoundingClientRect().right + 40 - tabs.getBoundingClientRect().right;
  if (hidden > 0) tabs.scrollLeft += hidden;
}

function showFurther(box) {
  const scroll = find(".scroll", box), button = find(".further", box);
  const update = () => {
    const edge = scroll.getBoundingClientRect().right + 1;
    const hidden = [...box.querySelectorAll("thead tr:last-child th")].filter((head) => head.getBoundingClientRect().right > edge);
    button.hidden = !hidden.length;
    find("[data-further]", button).textContent = `${hidden.length} more column${hidden.length === 1 ? "" : "s"}`;
  };
  scroll.addEventListener("scroll", update, { passive: true });
  button.addEventListener("click", () => scroll.scrollBy({ left: scroll.clientWidth / 2 }));
  new ResizeObserver(update).observe(scroll);
}

// Times come in UTC (templatetags/moments.py) and are shown in the browser's zone, with UTC as the tooltip.
const FORMATS = {
  day: { dateStyle: "medium" },
  minute: { dateStyle: "medium", timeStyle: "short" },
  second: { dateStyle: "medium", timeStyle: "medium" },
  clock: { timeStyle: "short" },
};

// The server needs the zone for what it says about whole days (console/days.py).
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;

function showInZone(time) {
  const inZone = (precision) => new Date(time.dateTime).toLocaleString("en-GB", FORMATS[precision]);
  if (time.dataset.time === "ago") time.title = `${inZone("second")} · ${time.title}`;
  else time.textContent = inZone(time.dataset.time);
  delete time.dataset.time;
}

// The value that is sent is in a hidden input behind the one to see.
function sendInUtc(input) {
  if (!input.name) return;
  const sent = Object.assign(document.createElement("input"), { type: "hidden", name: input.name, value: input.value && `${input.value}Z` });
  const time = new Date(sent.value);
  if (sent.value) input.value = new Date(time - time.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  input.removeAttribute("name");
  input.after(sent);
  find("small > span", input.labels[0]).textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
}

document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-utc]") && !target.name)
    target.nextElementSibling.value = target.value && `${new Date(target.value).toISOString().slice(0, 19)}Z`;
}, true);

// Lists of values; value_list.py reads and writes the same.
const ITEM = /[ \t\u00a0]*(?:("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")[ \t\u00a0]*(?=[,\r\n]|$)|([^,\r\n]*))/g;

function readValues(text) {
  const values = [];
  for (const [, quoted, plain] of text.matchAll(ITEM)) {
    const value = quoted === undefined ? plain.replace(/[ \t\u00a0]+$/, "") : JSON.parse(quoted);
    if (value || quoted) values.push(value);
  }
  return values;
}

function writeValue(value) {
  const read = readValues(value);
  return read.length === 1 && read[0] === value ? value : JSON.stringify(value);
}

// The text area stays what the form sends, with what is being typed as its last line.
function showChips(area) {
  if (area.hidden) return; // they were shown before
  const values = readValues(area.value);
  const box = document.createElement("div");
  const input = document.createElement("input");
  const send = (type) => {
    area.value = [...values.map(writeValue), input.value].filter((line) => line).join("\n");
    area.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const chip = (value, index) => {
    const element = document.createElement("span");
    const remove = document.createElement("button");
    element.className = "value-chip";
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${value}`);
    remove.addEventListener("click", () => { values.splice(index, 1); draw(); input.focus(); send("change"); });
    element.append(value, remove);
    return element;
  };
  input.leaveOut = () => { area.value = values.map(writeValue).join("\n"); };
  const draw = () => {
    for (const old of box.querySelectorAll(".value-chip")) old.remove();
    input.before(...values.map(chip));
  };
  const commit = () => {
    const typed = readValues(input.value);
    if (!typed.length) return;
    values.push(...typed.filter((value, index) => !values.includes(value) && typed.indexOf(value) === index));
    input.value = "";
    draw();
    send("change");
  };
  const isQuoting = () => /^\s*"(?:[^"\\]|\\.)*$/.test(input.value);

  for (const name of ["aria-label", "aria-invalid", "aria-describedby", "placeholder"])
    if (area.hasAttribute(name)) input.setAttribute(name, area.getAttribute(name));
  area.removeAttribute("aria-label");
  area.removeAttribute("aria-invalid");
  area.hidden = true;
  box.className = "value-chips";
  Object.assign(input, { autocomplete: "off", spellcheck: false });
  input.dataset.name = area.name;
  input.addEventListener("input", () => {
    if (input.value.includes(",") && !isQuoting()) commit();
    else send("input");
  });
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (!/[,\r\n]/.test(text) || input.value) return;
    event.preventDefault();
    values.push(...readValues(text).filter((value) => !values.includes(value)));
    draw();
    send("change");
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      commit();
    } else if (event.key === "Backspace" && !input.value && values.length) {
      event.preventDefault();
      input.value = writeValue(values.pop());
      draw();
    }
  });
  input.addEventListener("blur", commit);
  box.addEventListener("click", (event) => { if (event.target === box) input.focus(); });
  box.append(input);
  area.after(box);
  draw();
  if (chipBeingTyped?.name === area.name) {
    input.value = chipBeingTyped.text;
    input.focus();
    chipBeingTyped = undefined;
  }
}

// The number field is what the form sends; it may hold what the slider cannot, such as 33.3.
function startSlider(slider) {
  const box = slider.closest("[hidden]");
  if (!box) return; // it was started before
  const field = find(slider.dataset.slider);
  const tell = () => slider.setAttribute("aria-valuetext", `${field.value} %`);
  box.hidden = false;
  slider.addEventListener("input", () => { field.value = slider.value; tell(); });
  field.addEventListener("input", () => { slider.value = field.value || 0; tell(); });
}

function focusFirstError() {
  find("[data-first-error], main [aria-invalid=true]")?.focus();
}

async function copy(button) {
  const { copy: selector, copyText } = button.dataset;
  const text = selector ? find(selector).textContent : (copyText ?? location.href);
  button.label ??= [...button.childNodes];
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => button.replaceChildren(...button.label), 1500);
}

// Swagger UI has a dark theme of its own, by a class.
function themeDocs() {
  const { dataset, classList } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (find("#swagger-ui")) classList.toggle("dark-mode", dark);
}

function setTheme(theme, form) {
  const chosen = theme === "system" ? "" : theme;
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  themeDocs();
  find("meta[name=color-scheme]").content = chosen || "light dark";
  document.cookie = `theme=${chosen}; path=/; max-age=${chosen ? 31536000 : 0}; samesite=lax`;
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", button.value === theme);
  closeMenus();
}

// Menus and lists that unfold close as others do, and the focus stays on the one that had it.
function closeMenus(except) {
  for (const open of document.querySelectorAll("details:is(.more, .dropdown)[open]"))
    if (!open.contains(except)) {
      if (open.contains(document.activeElement)) find("summary", open).focus();
      open.open = false;
    }
}

const isWriting = (element) => element.matches("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    (event.target.closest("form") ?? find("form[data-send]"))?.requestSubmit();
  } else if (event.key === "Escape") {
    closeMenus();
  } else if (isWriting(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    const search = find("[data-search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "?") {
    find("#help")?.showModal();
  }
});

document.addEventListener("click", (event) => {
  closeMenus(event.target);
  const button = event.target.closest("button, input[type=checkbox]");
  if (!button) return;
  const { add, checkAll, open } = button.dataset;
  if (open) {
    event.preventDefault(); // without the script, such a button may send its form
    closeMenus();
    find(open).showModal();
  }
  if (button.matches("[data-dismiss]")) {
    button.closest(".note").remove();
    find("#main").focus();
  }
  if (button.matches("[data-copy], [data-copy-text], [data-copy-link]")) copy(button);
  if (add) {
    const content = find(add).content.cloneNode(true);
    const first = find("input, select", content);
    button.before(content);
    first?.focus();
  }
  if (checkAll)
    for (const box of button.form.elements) if (box.name === checkAll) box.checked = button.checked;
  updateNeeds();
});

// The search dialog: a combobox over the results. Typing asks (htmx); Enter waits for the answer to what was typed.
function startPalette(palette) {
  const query = find("input", palette);
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const current = () => find("[aria-selected=true]", palette);
  let waiting; // the Enter that came before the answer

  const select = (option) => {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    query.setAttribute("aria-expanded", String(!!option));
    if (option) query.setAttribute("aria-activedescendant", option.id);
    else query.removeAttribute("aria-activedescendant");
  };
  const isAnswered = () => find("[data-q]", palette)?.dataset.q === query.value.trim();
  const choose = ({ ctrlKey, metaKey }) => {
    if (!isAnswered()) { waiting = { ctrlKey, metaKey }; return; }
    waiting = undefined;
    current()?.dispatchEvent(new MouseEvent("click", { ctrlKey, metaKey, bubbles: true, cancelable: true }));
  };
  const open = (event) => {
    event.preventDefault();
    if (!palette.open) palette.showModal();
    query.select();
    htmx.trigger(query, "open");
  };
  const keys = {
    ArrowDown: (all, at) => all[(at + 1) % all.length],
    ArrowUp: (all, at) => all.at(at - 1),
    Home: (all) => all[0],
    End: (all) => all.at(-1),
  };

  palette.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    if (event.key === "Enter") choose(event);
    else if (keys[event.key] && all.length) select(keys[event.key](all, all.indexOf(current())));
    if (event.key === "Enter" || keys[event.key]) event.preventDefault();
    if (!isPaletteKey(event)) event.stopPropagation(); // the page below has keys of its own
  });
  palette.addEventListener("htmx:afterSwap", () => {
    select(options()[0]);
    if (waiting) choose(waiting);
  });
  palette.addEventListener("input", () => { waiting = undefined; });
  palette.addEventListener("close", () => { waiting = undefined; });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  for (const link of document.querySelectorAll("[data-palette]")) link.addEventListener("click", open);
  document.addEventListener("keydown", (event) => { if (isPaletteKey(event)) open(event); });
}

const isPaletteKey = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";

// The button says what it does: import the rest, exclude what is ticked. A blocked flag that is not ticked stops it.
function countExcluded() {
  const button = find("[data-import]");
  if (!button) return;
  const excluded = [...button.form.elements].filter((box) => box.dataset.exclude && (box.checked || box.type === "hidden"));
  const blocked = excluded.filter((box) => box.dataset.exclude === "refuse").length;
  const rest = button.dataset.import - (excluded.length - blocked);
  const count = (number) => number.toLocaleString("en");
  const others = excluded.length ? `, exclude ${count(excluded.length)}` : "";
  button.textContent = `Import ${count(rest)} flag${rest === 1 ? "" : "s"}${button.dataset.also}${others}`;
  const reason = document.getElementById("blocked");
  if (!button.dataset.stays) button.dataset.stays = String(button.disabled);
  if (button.dataset.stays === "true") return;
  button.disabled = (rest < 1 && !button.dataset.also) || blocked < button.dataset.blocked;
  if (reason) reason.hidden = !button.disabled;
}

// Ticks go along to the other pages of the list.
function carryTicks() {
  const boxes = [...document.querySelectorAll("[data-exclude]")];
  const names = boxes.filter((box) => box.checked || box.type === "hidden").map((box) => box.value);
  for (const link of document.querySelectorAll("[data-carry] thead a, [data-carry] ~ .pager a, .bar:has(~ [data-carry]) .filter")) {
    const url = new URL(link.href);
    url.searchParams.delete("flag");
    for (const name of names) url.searchParams.append("flag", name);
    link.href = url;
  }
  const form = find("[data-carry]") && find("[data-live]");
  for (const old of form?.querySelectorAll("[name=flag]") ?? []) old.remove();
  form?.append(...names.map((value) => Object.assign(document.createElement("input"), { type: "hidden", name: "flag", value })));
}

document.addEventListener("change", ({ target }) => {
  if (!target.dataset.exclude) return;
  countExcluded();
  carryTicks();
});

function countTicked(bar) {
  const boxes = [...bar.elements].filter((box) => box.name === bar.dataset.bulk);
  const ticked = boxes.filter((box) => box.checked).length;
  const count = find("[data-bulk-count]", bar);
  const { matching } = bar.elements;
  count.textContent = matching?.checked ? matching.dataset.count : ticked.toLocaleString("en");
  count.hidden = false;
  const all = [...bar.elements].find((box) => box.dataset.checkAll);
  all.checked = ticked === boxes.length;
  all.indeterminate = ticked > 0 && !all.checked;
}
addEventListener("reset", () => setTimeout(updateNeeds));

function updateNeeds() {
  for (const bar of document.querySelectorAll("[data-bulk]")) countTicked(bar);
  for (const button of document.querySelectorAll("[data-needs]"))
    button.disabled = ![...button.form.elements].some((box) => box.name === button.dataset.needs && box.checked);
}

document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-theme-form]")) {
    event.preventDefault();
    setTheme(event.submitter.value, event.target);
  } else if (!event.defaultPrevented && event.target.getAttribute("method") === "post") {
    sendOnce(event);
  }
});

// A double click sends a form once: the second request would add a second strategy, or a token nobody sees. A form whose
// answer is a file stays on the page and works again soon.
const sentAt = new WeakMap();

function sendOnce(event) {
  if (event.timeStamp - sentAt.get(event.target) < 3000) event.preventDefault();
  else sentAt.set(event.target, event.timeStamp);
}

// Empty fields do not belong into an address that people copy.
document.addEventListener("formdata", ({ target, formData }) => {
  if (!target.matches("[data-tidy]")) return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// Live filters. The answer replaces what stands around the form, never the form: focus, caret and what is being typed stay.
htmx.defineExtension("around", {
  handleSwap(_, root, answer) {
    const form = find("[data-live]", root), messages = find("#messages", root), said = find("#messages", answer);
    let fresh = find("[data-live]", answer);
    if (!fresh) return false;
    if (messages && !said?.childElementCount) said?.replaceWith(messages); // an Undo outlives the filtering
    const added = [];
    for (let kept = form; kept !== root; kept = kept.parentNode, fresh = fresh.parentNode) {
      const nodes = [...fresh.parentNode.childNodes], at = nodes.indexOf(fresh);
      for (const old of [...kept.parentNode.childNodes]) if (old !== kept) old.remove();
      kept.before(...nodes.slice(0, at));
      kept.after(...nodes.slice(at + 1));
      added.push(...nodes.filter((node) => node !== fresh));
    }
    announce(find("[data-total]", root)?.textContent);
    return added;
  },
});

function announce(text) {
  let status = find("#announced");
  if (!status) {
    status = Object.assign(document.createElement("p"), { id: "announced", className: "unseen", role: "status" });
    document.body.append(status);
  }
  status.textContent = text ?? "";
}

// Half of a value that has to be chosen from a list is not asked for; Enter asks for whatever is there.
document.addEventListener("input", (event) => {
  const { list, value, form } = event.target;
  if (form?.matches("[data-live]") && list && value && ![...list.options].some((option) => option.value === value)) event.stopPropagation();
}, true);

// One step back in the history undoes all that was typed into a field, not its last letter.
let filterTyped;
document.addEventListener("htmx:beforeHistoryUpdate", ({ detail }) => {
  if (!detail.requestConfig.elt.matches("[data-live]")) return;
  const field = document.activeElement;
  if (field === filterTyped && isWriting(field)) detail.history.type = "replace";
  filterTyped = field;
});
document.addEventListener("focusout", () => { filterTyped = undefined; });

// Where the results stand below the form, evaluating moves to them: else nothing seems to happen.
function showResults({ detail }) {
  const results = find("#results");
  if (!results || !detail.requestConfig?.elt.matches("form[data-send]") || find("[data-first-error]")) return;
  if (results.getBoundingClientRect().top > innerHeight / 2) results.scrollIntoView();
}

// What is redrawing a form (another operator, one row more) says what the form says, too: the look at what was typed just
// before does not cut it short.
document.addEventListener("htmx:confirm", (event) => {
  const { elt } = event.detail;
  if (elt.matches("#editor") && find("#body .htmx-request", elt)) event.preventDefault();
});

// A message above the page's content, as the server's own messages are.
function say(text) {
  const note = document.createElement("p");
  note.className = "note error";
  note.textContent = text;
  find("#messages").replaceChildren(note);
  note.scrollIntoView({ block: "nearest" });
}

// A refusal does not replace the part of the page, mostly a form, that it has no replacement for.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig, selectOverride } = event.detail;
  if (xhr.status < 400) return;
  const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
  const part = xhr.getResponseHeader("HX-Reselect") ?? selectOverride ?? requestConfig.elt.closest("[hx-select]")?.getAttribute("hx-select");
  if (part && find(part, answer)) return;
  event.detail.shouldSwap = false;
  say(find(".refusal h1", answer)?.textContent ?? `The server refused this (${xhr.status}). Nothing was changed.`);
});
document.addEventListener("htmx:sendError", () => say("The server cannot be reached. What you entered is still here."));

// What is typed while a form is being redrawn stays: the answer knows only what was there when it was asked for.
const TYPED = "textarea, select, input:not([type=checkbox], [type=hidden])";
let whenAsked, typedSince, chipBeingTyped;

function typedFields(form) {
  const fields = [...form.querySelectorAll(TYPED)].filter((field) => field.name);
  return new Map(fields.map((field) => [field.name, field.value]));
}

document.addEventListener("htmx:beforeRequest", ({ detail: { target, requestConfig } }) => {
  if (target.id !== "body") return;
  whenAsked = requestConfig.parameters.do?.startsWith("remove-") ? undefined : typedFields(target);
});

document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  if (!whenAsked || target.id !== "body") return;
  const input = find(".value-chips input:focus", target);
  chipBeingTyped = input && { name: input.dataset.name, text: input.value };
  input?.leaveOut();
  typedSince = [...typedFields(target)].filter(([name, value]) => whenAsked.get(name) !== value);
});

document.addEventListener("htmx:afterSwap", () => {
  for (const [name, value] of typedSince ?? []) {
    const field = find(`#body [name="${CSS.escape(name)}"]`);
    if (field?.matches(TYPED)) field.value = value;
  }
  if (typedSince?.length) find("#editor")?.dispatchEvent(new Event("input")); // what it says is said of the answer
  typedSince = undefined;
});

// Results come again with each letter typed: what was open stays open. In the matrix, a cell opens its line.
let openResults = [];
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  openResults = target.id === "results" ? [...target.querySelectorAll("details[id][open]")].map(({ id }) => id) : [];
});
document.addEventListener("htmx:afterSettle", () => {
  for (const id of openResults.splice(0)) document.getElementById(id)?.setAttribute("open", "");
});
document.addEventListener("click", ({ target }) => {
  const reasons = target.closest(".matrix td") && find("details", target.closest("tr"));
  if (reasons && !String(getSelection())) reasons.open = !reasons.open;
});

// The form of a strategy shows the problems of the inputs that were left, not of those nobody has come to yet.
const leftInputs = new Set();

function markLeft({ target }) {
  const name = target.name || target.dataset.name;
  if (name && target.closest("#editor")) leftInputs.add(name);
}
document.addEventListener("focusout", markLeft);
document.addEventListener("change", markLeft, true); // before the form is sent for it

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.closest("#editor")) return;
  if (detail.parameters.do?.startsWith("remove-")) leftInputs.clear();
  detail.parameters.left = [...leftInputs].join("\n");
});

for (const button of document.querySelectorAll("[data-enable-after]"))
  setTimeout(() => {
    button.disabled = false;
    document.getElementById(button.getAttribute("aria-describedby"))?.remove();
    button.removeAttribute("aria-describedby");
  }, button.dataset.enableAfter * 1000);

document.addEventListener("htmx:load", (event) => { show(event.detail.elt); countExcluded(); });
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.target?.id !== "results" && !detail.target?.closest("[aria-live]")) focusFirstError(); // those come while one types
});
document.addEventListener("htmx:afterSettle", showResults);
document.addEventListener("htmx:afterSettle", updateNeeds);
addEventListener("pageshow", updateNeeds); // after the browser has put back what was ticked
show();
for (const dialog of document.querySelectorAll("dialog[data-modal]")) {
  dialog.open = false;
  dialog.showModal();
}
if (find("#palette")) startPalette(find("#palette"));
countExcluded();
// Data fixes has no theme of its own in its first tag.
if (/^(dark|light)$/.test(find("meta[name=color-scheme]")?.content)) document.documentElement.dataset.theme = find("meta[name=color-scheme]").content;
themeDocs();
focusFirstError();
