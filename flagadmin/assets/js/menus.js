// data-open="#id": a button that opens a dialog. data-modal: a dialog that is open when the page comes, or when htmx adds it.
// data-dismiss: a button that takes its message away; no message goes by itself, an Undo may be in it.
import { find, onEach } from "./dom.js";

// Menus and lists that unfold close as others do, and the focus stays on the one that had it.
export function closeMenus(except) {
  for (const open of document.querySelectorAll("details:is(.more, .dropdown)[open]"))
    if (!open.contains(except)) {
      if (open.contains(document.activeElement)) find("summary", open).focus();
      open.open = false;
    }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !(event.ctrlKey || event.metaKey)) closeMenus();
});

document.addEventListener("click", (event) => {
  closeMenus(event.target);
  const button = event.target.closest("button, input[type=checkbox]");
  if (button?.dataset.open) {
    event.preventDefault(); // without the script, such a button may send its form
    closeMenus();
    find(button.dataset.open).showModal();
  }
  if (button?.matches("[data-dismiss]")) {
    button.closest(".toast").remove();
    find("#main").focus();
  }
});

onEach("dialog[data-modal]", (dialog) => {
  if (!dialog.open) dialog.addEventListener("close", () => dialog.remove()); // htmx added it, and adds it anew when asked again
  else dialog.addEventListener("close", () => find("#editor button.main")?.focus()); // the page came anew: nothing had the focus
  dialog.open = false;
  dialog.showModal();
});
