// data-copy="#id": a button that copies an element's text; data-copy-text="…": a given one.
import { find } from "./dom.js";

async function copy(button) {
  const { copy: selector, copyText } = button.dataset;
  const text = selector ? find(selector).textContent : copyText;
  button.label ??= [...button.childNodes];
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => button.replaceChildren(...button.label), 1500);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest(":is([data-copy], [data-copy-text])");
  if (button) copy(button);
});
