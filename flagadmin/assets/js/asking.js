// data-ask: a question below the row of a list. Escape and data-close take it away, and so does its answer; the focus goes
// back to the switch that asked.
import { find, onEach } from "./dom.js";

function askInRow(form) {
  const row = form.closest("tr");
  const asker = document.activeElement.closest("[role=switch], .share-of")?.id;
  const goBack = () => asker && find(`#${asker}`)?.focus();
  const close = () => {
    row.remove();
    goBack();
  };
  for (const other of document.querySelectorAll("tr.ask")) if (other !== row) other.remove();
  const share = find("[name=share]", form);
  (share ?? find("h2", form)).focus({ preventScroll: true });
  share?.select();
  row.scrollIntoView({ block: "nearest" });
  row.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  find("[data-close]", form).addEventListener("click", (event) => {
    event.preventDefault();
    close();
  });
  form.addEventListener("htmx:afterRequest", ({ detail, target }) => {
    if (target === form && detail.successful) close();
  });
}

onEach("form[data-ask]", askInRow);
