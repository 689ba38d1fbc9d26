// What several behaviors need.
export const find = (selector, within = document) => within.querySelector(selector);

export const isWriting = (element) => element.matches("input, textarea, select, [contenteditable]");

export function announce(text) {
  let status = find("#announced");
  if (!status) {
    status = Object.assign(document.createElement("p"), { id: "announced", className: "unseen", role: "status" });
    document.body.append(status);
  }
  status.textContent = text ?? "";
}

// A message above the page's content, as the server's own messages are.
export function say(text) {
  const note = document.createElement("p");
  note.className = "note error";
  note.textContent = text;
  find("#messages").replaceChildren(note);
  note.scrollIntoView({ block: "nearest" });
}

// Calls ``behave`` with each of these elements that the page has, and with those that htmx adds later.
export function onEach(selector, behave) {
  const all = (root) => {
    for (const element of root.querySelectorAll(selector)) behave(element);
  };
  all(document);
  document.addEventListener("htmx:load", ({ detail }) => all(detail.elt));
}
