// data-check-all="name": a checkbox that ticks all checkboxes of this name in its form.
// data-bulk="name": a form that tells the number of ticked checkboxes of this name.
// data-needs="name": a button that is off until a checkbox of this name in its form is ticked.
import { find } from "./dom.js";

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

function updateNeeds() {
  for (const bar of document.querySelectorAll("[data-bulk]")) countTicked(bar);
  for (const button of document.querySelectorAll("[data-needs]"))
    button.disabled = ![...button.form.elements].some((box) => box.name === button.dataset.needs && box.checked);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button, input[type=checkbox]");
  if (!button) return;
  const name = button.dataset.checkAll;
  if (name)
    for (const box of button.form.elements) if (box.name === name) box.checked = button.checked;
  updateNeeds();
});
addEventListener("reset", () => setTimeout(updateNeeds));
addEventListener("pageshow", updateNeeds); // after the browser has put back what was ticked
document.addEventListener("htmx:afterSettle", updateNeeds);
