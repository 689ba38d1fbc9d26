// data-when: the choice of a form between now, later and in steps. Its button (data-save) says what it does: "Schedule for Fri, 27 Nov, 09:00".
import { find, onEach } from "./dom.js";

const FORMAT = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };

function sayWhen(choice) {
  const around = choice.closest("dialog, form"), button = find("[data-save]", around), at = find("[type=datetime-local]", around);
  if (!button || !at) return;
  const now = button.textContent, place = choice.dataset.when && ` in ${choice.dataset.when}`;
  const say = () => {
    const later = find("[value=at]", choice).checked && at.value;
    const steps = find("[value=steps]", choice)?.checked && find("[name=rollouts]", around).value.split(",")[0].trim();
    button.textContent = steps ? `Start with ${steps} %${place}` : later ? `Schedule for ${new Date(at.value).toLocaleString("en-GB", FORMAT)}` : now;
  };
  choice.addEventListener("change", () => {
    say();
    if (!find("[value=now]", choice).checked) choice.scrollIntoView(); // its fields are below
  });
  at.addEventListener("input", say);
  find("[name=rollouts]", around)?.addEventListener("input", say);
}

onEach("[data-when]", sayWhen);
