// data-share: the share of a variant. Typing one fixes it; one that is not fixed is computed, so what was typed goes.
import { find } from "./dom.js";

const part = (field, name) => find(`[name="${field.name.replace("percent", name)}"]`, field.form);

document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-share]")) part(target, "fixed").checked = true;
}, true); // before the form is sent for it

document.addEventListener("change", ({ target }) => {
  const share = target.matches(".share [type=checkbox]") && find("[data-share]", target.closest(".share"));
  if (share && !target.checked) share.value = part(share, "shown").value;
}, true);
