// data-when: the choice of a form between now, later and in steps. Its button (data-save) says what it does: "Schedule for Fri, 27 Nov, 09:00".
import { find, onEach } from "./dom.js";

const FORMAT = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };

function sayWhen(choice) {
  const around = choice.closest("dialog, form, .roll-out"), button = find("[data-save]", around), at = find("[type=datetime-local]", around);
  if (!button || !at) return;
  const label = find(".if-at", button) ?? button, now = button.textContent;
  const say = () => {
    const later = at.value && `Schedule for ${new Date(at.value).toLocaleString("en-GB", FORMAT)}`;
    if (later && (label !== button || find("[value=at]", choice).checked)) label.textContent = later;
    else if (label === button) label.textContent = now;
  };
  choice.addEventListener("change", () => {
    say();
    if (label === button && !find("[value=now]", choice).checked) choice.scrollIntoView(); // its fields are below
  });
  at.addEventListener("input", say);
  say();
}

document.addEventListener("input", ({ target }) => {
  if (target.id === "steps-rollouts" && find("#start-with")) find("#start-with").textContent = target.value.split(",").map((part) => part.trim()).join(" → ");
});

// Steps that somebody has typed stay when the percentage changes.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const typed = find("#steps-rollouts");
  if (!["offer", "start-with"].includes(event.detail.target.id) || typed.value === typed.defaultValue) return;
  event.preventDefault();
  if (event.detail.target.id === "offer") typed.dispatchEvent(new Event("change", { bubbles: true }));
});

// As soon as it is counted, the button says for how many ("Save now: 2,968 of 10,000 users change"), and what this very
// change needs replaces the rules for all changes.
let rules;
document.addEventListener("htmx:afterSettle", () => {
  const counted = find("#who-changes"), words = find("#saved-for"), line = find("#needs-review");
  if (!counted?.firstElementChild) return;
  if (words) {
    const change = find("[data-change]", counted)?.textContent.trim();
    words.textContent = change ? `: ${change.replace("generated ", "")}` : "";
  }
  if (line) {
    const needs = find("[data-approvals]", counted);
    rules ??= [...line.childNodes];
    line.replaceChildren(...(needs ? needs.cloneNode(true).childNodes : rules));
    if (needs) needs.hidden = true;
  }
});

onEach("[data-when]", sayWhen);
