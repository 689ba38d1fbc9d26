// data-time="minute": a time that is shown in the browser's zone.
// data-zone: below it, times stay in the zone of the days that they are listed by.
// data-utc: a time input whose value is sent in UTC and shown in the browser's zone.
import { find, onEach } from "./dom.js";

// Times come in UTC (templatetags/moments.py) and are shown in the browser's zone, with UTC as the tooltip.
const FORMATS = {
  day: { dateStyle: "medium" },
  minute: { dateStyle: "medium", timeStyle: "short" },
  second: { dateStyle: "medium", timeStyle: "medium" },
  clock: { timeStyle: "short" },
};

// The server needs the zone for what it says about whole days (core/lists/days.py).
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;

function showInZone(time) {
  const inZone = (precision) => new Date(time.dateTime).toLocaleString("en-GB", FORMATS[precision]);
  if (time.dataset.time === "ago") time.title = `${inZone("second")} · ${time.title}`;
  else time.textContent = inZone(time.dataset.time);
  delete time.dataset.time;
}

const SKIPPED = "Clocks go forward that day and skip this time. Choose another one.";
const inLocalTime = (time) => new Date(time - time.getTimezoneOffset() * 60000).toISOString();
// JavaScript reads a local time that clocks skip as a later one.
const isSkipped = (value) => value && inLocalTime(new Date(value)).slice(0, 16) !== value.slice(0, 16);

// The value that is sent is in a hidden input behind the one to see.
function sendInUtc(input) {
  if (!input.name) return;
  const sent = Object.assign(document.createElement("input"), { type: "hidden", name: input.name, value: input.value && `${input.value}Z` });
  if (input.hasAttribute("form")) sent.setAttribute("form", input.getAttribute("form"));
  const time = new Date(sent.value);
  if (sent.value) input.value = inLocalTime(time).slice(0, 19);
  input.removeAttribute("name");
  input.after(sent);
  find("small > span", input.labels[0]).textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
}

document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-utc]") && !target.name)
    target.nextElementSibling.value = target.value && `${new Date(target.value).toISOString().slice(0, 19)}Z`;
  if (target.matches("[data-utc]")) target.setCustomValidity(isSkipped(target.value) ? SKIPPED : "");
}, true);

onEach("time[data-time]:not([data-zone] *)", showInZone);
onEach("[data-utc]", sendInUtc);
