// .time: a click on a lane, or the end of a drag, shows that moment. Without it, the dates of the axis are links.
import { onEach } from "./dom.js";

function startTime(card) {
  const [begin, end] = [Date.parse(card.dataset.begin), Date.parse(card.dataset.end)];
  let from = null;
  const show = (event) => {
    const plot = event.target.closest(".lane:not(.axis) > .plot");
    if (!plot || from === null || event.target.closest("a")) return;
    const box = plot.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const address = new URL(location.href);
    address.searchParams.set("at", new Date(begin + share * (end - begin)).toISOString());
    address.hash = "time";
    location.assign(address);
  };
  card.addEventListener("pointerdown", (event) => { from = event.clientX; });
  card.addEventListener("pointerup", show);
}

onEach(".time", startTime);
