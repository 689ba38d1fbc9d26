// data-search: "/" moves here. data-send: Ctrl+Enter sends this form from wherever one is (else the form one is in).
// "?" opens the help.
import { find, isWriting } from "./dom.js";

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.form ?? event.target.closest("form") ?? find("form[data-send]");
    form?.requestSubmit(find(`button.main[form="${form.id}"]`)); // its first button may only update what the form says
  } else if (event.key === "Escape" || isWriting(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    const search = find("[data-search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "?") {
    find("#help")?.showModal();
  }
});
