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

// The button says for how many, as soon as that is counted: "Save now: 2,968 of 10,000 users change".
document.addEventListener("htmx:afterSettle", () => {
  const words = find("#saved-for");
  if (!words || !find("#who-changes")) return;
  const change = find("#who-changes [data-change]")?.textContent.trim();
  words.textContent = change ? `: ${change.replace("generated ", "")}` : "";
});

onEach("[data-when]", sayWhen);
