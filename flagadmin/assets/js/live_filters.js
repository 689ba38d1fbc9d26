// data-live: a form of filters that apply while one types (includes/live.html).
import { announce, find, isWriting } from "./dom.js";

// The answer replaces what stands around the form, never the form: focus, caret and what is being typed stay.
htmx.defineExtension("around", {
  handleSwap(_, root, answer) {
    const form = find("[data-live]", root), messages = find("#messages", root), said = find("#messages", answer);
    let fresh = find("[data-live]", answer);
    if (!fresh) return false;
    if (messages && !said?.childElementCount) said?.replaceWith(messages); // an Undo outlives the filtering
    const added = [];
    for (let kept = form; kept !== root; kept = kept.parentNode, fresh = fresh.parentNode) {
      const nodes = [...fresh.parentNode.childNodes], at = nodes.indexOf(fresh);
      for (const old of [...kept.parentNode.childNodes]) if (old !== kept) old.remove();
      kept.before(...nodes.slice(0, at));
      kept.after(...nodes.slice(at + 1));
      added.push(...nodes.filter((node) => node !== fresh));
    }
    announce(find("[data-total]", root)?.textContent);
    return added;
  },
});

// Half of a value that has to be chosen from a list is not asked for; Enter asks for whatever is there.
document.addEventListener("input", (event) => {
  const { list, value, form } = event.target;
  if (form?.matches("[data-live]") && list && value && ![...list.options].some((option) => option.value === value)) event.stopPropagation();
}, true);

// One step back in the history undoes all that was typed into a field, not its last letter.
let filterTyped;
document.addEventListener("htmx:beforeHistoryUpdate", ({ detail }) => {
  if (!detail.requestConfig.elt.matches("[data-live]")) return;
  const field = document.activeElement;
  if (field === filterTyped && isWriting(field)) detail.history.type = "replace";
  filterTyped = field;
});
document.addEventListener("focusout", () => { filterTyped = undefined; });
