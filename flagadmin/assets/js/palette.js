// data-palette: a link that opens the search dialog, as Ctrl+K does.
import { find } from "./dom.js";

// The search dialog: a combobox over the results. Typing asks (htmx); Enter waits for the answer to what was typed.
function startPalette(palette) {
  const query = find("input", palette);
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const current = () => find("[aria-selected=true]", palette);
  let waiting; // the Enter that came before the answer

  const select = (option) => {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    query.setAttribute("aria-expanded", String(!!option));
    if (option) query.setAttribute("aria-activedescendant", option.id);
    else query.removeAttribute("aria-activedescendant");
  };
  const isAnswered = () => find("[data-q]", palette)?.dataset.q === query.value.trim();
  const choose = ({ ctrlKey, metaKey }) => {
    if (!isAnswered()) { waiting = { ctrlKey, metaKey }; return; }
    waiting = undefined;
    current()?.dispatchEvent(new MouseEvent("click", { ctrlKey, metaKey, bubbles: true, cancelable: true }));
  };
  const open = (event) => {
    event.preventDefault();
    if (!palette.open) palette.showModal();
    query.select();
    htmx.trigger(query, "open");
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
    else if (keys[event.key] && all.length) select(keys[event.key](all, all.indexOf(current())));
    if (event.key === "Enter" || keys[event.key]) event.preventDefault();
    if (!isPaletteKey(event)) event.stopPropagation(); // the page below has keys of its own
  });
  palette.addEventListener("htmx:afterSwap", () => {
    select(options()[0]);
    if (waiting) choose(waiting);
  });
  palette.addEventListener("input", () => { waiting = undefined; });
  palette.addEventListener("close", () => { waiting = undefined; });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  for (const link of document.querySelectorAll("[data-palette]")) link.addEventListener("click", open);
  document.addEventListener("keydown", (event) => { if (isPaletteKey(event)) open(event); });
}

const isPaletteKey = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";

if (find("#palette")) startPalette(find("#palette"));
