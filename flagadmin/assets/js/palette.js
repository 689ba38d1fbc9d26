// data-palette: a link that opens the search dialog, as Ctrl+K does.
import { find } from "./dom.js";

// The search dialog: a combobox over the results. Typing asks (htmx); Enter waits for the answer to what was typed, unless
// an arrow key has chosen among the results that are still shown. Without an answer it opens the page of results.
function startPalette(palette) {
  const query = find("input", palette);
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const current = () => find("[aria-selected=true]", palette);
  const results = find("#found", palette);
  let waiting; // the Enter that came before the answer
  let moved = false; // whether an arrow key has chosen the current option
  let chosen; // the address of that option

  const select = (option) => {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    query.setAttribute("aria-expanded", String(!!option));
    if (option) query.setAttribute("aria-activedescendant", option.id);
    else query.removeAttribute("aria-activedescendant");
  };
  const isAnswered = () => find("[data-q]", palette)?.dataset.q === query.value.trim();
  const showBusy = () => results.setAttribute("aria-busy", String(!isAnswered()));
  const choose = ({ ctrlKey, metaKey }) => {
    if (!isAnswered() && !moved) { waiting = { ctrlKey, metaKey }; return; }
    waiting = undefined;
    current()?.dispatchEvent(new MouseEvent("click", { ctrlKey, metaKey, bubbles: true, cancelable: true }));
  };
  const open = (event) => {
    event.preventDefault();
    if (!palette.open) palette.showModal();
    query.select();
    htmx.trigger(query, "open");
    showBusy();
  };
  const keys = {
    ArrowDown: (all, at) => all[(at + 1) % all.length],
    ArrowUp: (all, at) => all.at(at - 1),
    Home: (all) => all[0],
    End: (all) => all.at(-1),
  };

  palette.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    if (event.key === "Enter") choose(event);
    else if (keys[event.key] && all.length) {
      moved = true;
      select(keys[event.key](all, all.indexOf(current())));
    }
    if (event.key === "Enter" || keys[event.key]) event.preventDefault();
    if (!isPaletteKey(event)) event.stopPropagation(); // the page below has keys of its own
  });
  palette.addEventListener("htmx:beforeSwap", () => { chosen = moved ? current()?.href : undefined; });
  palette.addEventListener("htmx:afterSwap", () => {
    const again = chosen && options().find(({ href }) => href === chosen);
    moved = !!again;
    select(again ?? options()[0]);
    showBusy();
    if (waiting) choose(waiting);
  });
  for (const failure of ["htmx:responseError", "htmx:sendError"]) palette.addEventListener(failure, () => {
    results.setAttribute("aria-busy", "false");
    if (waiting) location.assign(`${query.getAttribute("hx-get")}?${new URLSearchParams({ q: query.value })}`);
  });
  palette.addEventListener("input", () => { waiting = undefined; moved = false; showBusy(); });
  palette.addEventListener("close", () => { waiting = undefined; });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  for (const link of document.querySelectorAll("[data-palette]")) link.addEventListener("click", open);
  document.addEventListener("keydown", (event) => { if (isPaletteKey(event)) open(event); });
}

const isPaletteKey = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";

if (find("#palette")) startPalette(find("#palette"));
