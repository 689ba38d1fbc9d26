// What htmx redraws: what is typed, opened or left meanwhile stays, and a refusal replaces nothing.
import { keepUnfinished } from "./chips.js";
import { find, say } from "./dom.js";

// What is redrawing a form (another operator, one row more) says what the form says, too: the look at what was typed just
// before does not cut it short.
document.addEventListener("htmx:confirm", (event) => {
  const { elt } = event.detail;
  if (elt.matches("#editor") && find("#body .htmx-request", elt)) event.preventDefault();
});

// What was redrawn while the pointer was pressed on it is clicked when the pointer is released where it was: the browser
// does not know the new element for the old one.
let pressed;

document.addEventListener("pointerdown", ({ target, x, y }) => {
  const control = target.closest("label")?.control ?? target.closest("a, button, input, select, summary") ?? target;
  pressed = { control, x, y };
}, true);

document.addEventListener("pointerup", ({ x, y }) => {
  const { control } = pressed ?? {};
  const stayed = control && Math.hypot(x - pressed.x, y - pressed.y) < 5;
  if (stayed && !control.isConnected && control.id) find(`#${CSS.escape(control.id)}`)?.click();
  pressed = undefined;
}, true);

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

// What is typed or ticked while a form is being redrawn stays: the answer knows only what was there when it was asked for.
const TYPED = "#body :is(textarea, select, input:not([type=checkbox], [type=hidden])), #rest [type=checkbox]";
let whenAsked, typedSince;

const valueOf = (field) => (field.type === "checkbox" ? field.checked : field.value);

function typedFields() {
  const fields = [...document.querySelectorAll(TYPED)].filter((field) => field.name);
  return new Map(fields.map((field) => [field.name, valueOf(field)]));
}

document.addEventListener("htmx:beforeRequest", ({ detail: { target, requestConfig } }) => {
  if (target.id !== "body") return;
  whenAsked = requestConfig.parameters.do?.startsWith("remove-") ? undefined : typedFields();
});

document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  if (!whenAsked || target.id !== "body") return;
  keepUnfinished(target);
  typedSince = [...typedFields()].filter(([name, value]) => value !== (whenAsked.get(name) ?? false));
});

document.addEventListener("htmx:afterSwap", () => {
  for (const [name, value] of typedSince ?? []) {
    const field = find(`:is(#body, #rest) [name="${CSS.escape(name)}"]`);
    if (field?.matches(TYPED)) field[field.type === "checkbox" ? "checked" : "value"] = value;
  }
  if (typedSince?.length) find("#editor")?.dispatchEvent(new Event("input")); // what it says is said of the answer
  typedSince = undefined;
});

// The form of a strategy shows the problems of the inputs that were left, not of those nobody has come to yet.
const leftInputs = new Set();

function markLeft({ target }) {
  const name = target.name || target.dataset.name;
  if (name && target.closest("#editor")) leftInputs.add(name);
}
document.addEventListener("focusout", markLeft);
document.addEventListener("change", markLeft, true); // before the form is sent for it

// What is wrong is said at the inputs while one types: they are not drawn again, so they are marked here.
function markWrong() {
  for (const errors of document.querySelectorAll("#editor .errorlist[id]")) {
    const row = errors.closest(".condition-row");
    const fields = row
      ? row.querySelectorAll(".value :is(input, select, textarea), [name$=-field]")
      : document.querySelectorAll(`[aria-describedby~="${CSS.escape(errors.id)}"]`);
    for (const field of fields) {
      const wrong = errors.childElementCount && !(field.matches("[name$=-field]") && field.value);
      if (wrong) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
  }
}
document.addEventListener("htmx:afterSettle", markWrong);

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.closest("#editor")) return;
  if (detail.parameters.do?.startsWith("remove-")) leftInputs.clear();
  detail.parameters.left = [...leftInputs].join("\n");
});
