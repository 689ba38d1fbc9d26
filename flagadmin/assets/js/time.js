// .time: a click on a lane, or the end of a drag, shows that moment. With data-picks, a drag picks the time between its
// ends. Without it, the dates of the axis are links.
import { onEach } from "./dom.js";

const LEAST = 4; // pixels; less is a click

function startTime(card) {
  const [begin, end] = [Date.parse(card.dataset.begin), Date.parse(card.dataset.end)];
  const picks = "picks" in card.dataset;
  let from = null;
  const locate = (x) => {
    const box = card.querySelector(".lane:not(.axis) > .plot").getBoundingClientRect();
    return Math.min(1, Math.max(0, (x - box.left) / box.width));
  };
  const show = (names, shares) => {
    const address = new URL(location.href);
    names.forEach((name, index) => address.searchParams.set(name, new Date(begin + shares[index] * (end - begin)).toISOString()));
    address.hash = picks ? "" : "time";
    location.assign(address);
  };
  const span = (x) => [from, x].map(locate).sort((a, b) => a - b);
  const isPicking = (x) => picks && from !== null && Math.abs(x - from) >= LEAST;
  const showWindow = (left, right) => {
    for (const shown of card.querySelectorAll(".window")) {
      shown.setAttribute("x", `${100 * left}%`);
      shown.setAttribute("width", `${100 * (right - left)}%`);
    }
  };
  card.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0) return; // another button opens the browser's menu
    from = event.target.closest(".lane:not(.axis) > .plot") && !event.target.closest("a") ? event.clientX : null;
    if (picks && from !== null) card.setPointerCapture(event.pointerId);
  });
  card.addEventListener("pointermove", (event) => {
    if (!isPicking(event.clientX)) return;
    showWindow(...span(event.clientX));
  });
  card.addEventListener("pointercancel", () => { // a scroll took the drag over
    if (from !== null && picks) showWindow(0, 0);
    from = null;
  });
  card.addEventListener("pointerup", (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    if (isPicking(event.clientX)) show(["since", "until"], span(event.clientX));
    else if (!picks && from !== null && !event.target.closest("a")) show(["at"], [locate(event.clientX)]);
    from = null;
  });
}

onEach(".time", startTime);
