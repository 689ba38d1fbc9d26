// data-sideways: a table that says how many of its columns are out of sight, and moves to them.
// The current tab is in view on a narrow screen.
import { find, onEach } from "./dom.js";

// The current tab is in view on a narrow screen, with a bit of the next one.
function showTab(tab, tabs) {
  const hidden = tab.getBoundingClientRect().right + 40 - tabs.getBoundingClientRect().right;
  if (hidden > 0) tabs.scrollLeft += hidden;
}

function showFurther(box) {
  const scroll = find(".scroll", box), button = find(".further", box);
  const update = () => {
    const edge = scroll.getBoundingClientRect().right + 1;
    const hidden = [...box.querySelectorAll("thead tr:last-child th")].filter((head) => head.getBoundingClientRect().right > edge);
    button.hidden = !hidden.length;
    find("[data-further]", button).textContent = `${hidden.length} more column${hidden.length === 1 ? "" : "s"}`;
  };
  scroll.addEventListener("scroll", update, { passive: true });
  button.addEventListener("click", () => scroll.scrollBy({ left: scroll.clientWidth / 2 }));
  new ResizeObserver(update).observe(scroll);
}

onEach("[data-sideways]", showFurther);
onEach(".tabs [aria-current]", (tab) => showTab(tab, tab.parentNode));
