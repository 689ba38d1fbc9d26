// data-import="12": a button that imports so many flags less those ticked to be excluded (data-exclude="create").
// data-carry: a list whose ticks go along to its other pages.
import { find } from "./dom.js";

// The button says what it does: import the rest, exclude what is ticked. A blocked flag that is not ticked stops it.
function countExcluded() {
  const button = find("[data-import]");
  if (!button) return;
  const excluded = [...button.form.elements].filter((box) => box.dataset.exclude && (box.checked || box.type === "hidden"));
  const blocked = excluded.filter((box) => box.dataset.exclude === "refuse").length;
  const rest = button.dataset.import - (excluded.length - blocked);
  const count = (number) => number.toLocaleString("en");
  const others = excluded.length ? `, exclude ${count(excluded.length)}` : "";
  button.textContent = `${button.dataset.verb} ${count(rest)} flag${rest === 1 ? "" : "s"}${button.dataset.also}${others}`;
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

document.addEventListener("htmx:load", countExcluded);
countExcluded();
