// The results of an evaluation, which come again with each letter typed.
// data-last-context: a link to the last results of this browser, for a form that is still empty.
import { find } from "./dom.js";

// Where the results stand below the form, evaluating moves to them: else nothing seems to happen.
function showResults({ detail }) {
  const results = find("#results");
  if (!results || !detail.requestConfig?.elt.matches("form[data-send]") || find("[data-first-error]")) return;
  if (results.getBoundingClientRect().top > innerHeight / 2) results.scrollIntoView();
}
document.addEventListener("htmx:afterSettle", showResults);

// What was open stays open. In the matrix, a cell opens its line.
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

// The last context is one click away. It stays in this tab's browser: nobody else sees it.
const LAST = "last context";

function rememberContext() {
  const link = find("[data-last-context]");
  if (!link) return;
  if (/[?&](context\.|json=|kept=|saved=)/.test(location.search)) localStorage.setItem(LAST, location.search);
  const last = localStorage.getItem(LAST);
  link.hidden = !last || location.search !== "";
  if (last) link.href = `${location.pathname}${last}`;
}
document.addEventListener("htmx:afterSettle", rememberContext);
rememberContext();
