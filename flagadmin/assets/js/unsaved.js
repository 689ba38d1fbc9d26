// A form that is sent (method="post") warns before its page is left with something unsaved in it.
// data-unsaved: a form that came back with what is not saved yet.
// data-discard: a link that leaves it on purpose.
import { find } from "./dom.js";

// They choose rows, ask a question, confirm or log in: nothing is lost with them.
const KEEPS_NOTHING = "[data-bulk], .asked, .danger, #confirm, :has([autocomplete~=current-password], [autocomplete~=one-time-code])";
const before = new Map(); // what the forms somebody is at had when they came

const values = (form) => JSON.stringify([...new FormData(form)].map(([name, value]) => [name, value.name ?? value]).filter(([, value]) => value));

function remember({ target }) {
  const form = target.form ?? target.closest?.("form");
  if (form?.getAttribute("method") !== "post" || form.matches(KEEPS_NOTHING) || before.has(form)) return;
  before.set(form, values(form));
}
document.addEventListener("focusin", remember);
document.addEventListener("pointerdown", remember, true);

function forget(form) {
  before.delete(form);
  delete form.dataset.unsaved;
}
document.addEventListener("submit", ({ target, defaultPrevented }) => {
  if (!defaultPrevented && target.getAttribute("method") === "post") forget(target);
});
document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-discard]")) for (const form of document.forms) forget(form);
});

addEventListener("beforeunload", (event) => {
  const changed = [...before].some(([form, old]) => form.isConnected && values(form) !== old);
  if (changed || find("form[data-unsaved]")) event.preventDefault();
});
