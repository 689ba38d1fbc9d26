// data-add="#template": a button that appends the template's content before itself.
// data-remove=".row": a button that removes the closest such element, and its inputs with it.
// data-tidy: a form whose empty fields stay out of the address.
// data-first-error: where the focus goes when a form comes back with problems.
// data-enable-after="9": a button that works again after so many seconds, and what describes it goes.
// data-submit-now: a form that sends itself; its button is for browsers without scripts.
import { find } from "./dom.js";

find("[data-submit-now]")?.requestSubmit();

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-add]");
  if (!button) return;
  const content = find(button.dataset.add).content.cloneNode(true);
  const first = find("input, select", content);
  for (const remove of content.querySelectorAll("[data-remove]")) remove.hidden = false;
  button.before(content);
  first?.focus();
});

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-remove]");
  if (!button) return;
  const row = button.closest(button.dataset.remove);
  row.remove();
  find("[data-add]")?.focus();
});

document.addEventListener("submit", (event) => {
  if (!event.defaultPrevented && event.target.getAttribute("method") === "post") sendOnce(event);
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

for (const button of document.querySelectorAll("[data-enable-after]"))
  setTimeout(() => {
    button.disabled = false;
    document.getElementById(button.getAttribute("aria-describedby"))?.remove();
    button.removeAttribute("aria-describedby");
  }, button.dataset.enableAfter * 1000);

function focusFirstError() {
  find("[data-first-error], main [aria-invalid=true]")?.focus();
}

document.addEventListener("htmx:afterSettle", ({ detail }) => {
  const whileTyping = detail.target?.matches("#results, #body") || detail.target?.closest("[aria-live]");
  if (!whileTyping || detail.xhr?.status >= 400) focusFirstError();
});
focusFirstError();
