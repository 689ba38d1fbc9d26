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

// A message as the server's own messages are.
export function say(text) {
  const toast = document.createElement("div"), dismiss = document.createElement("button");
  toast.className = "toast error";
  toast.setAttribute("role", "alert");
  Object.assign(dismiss, { type: "button", className: "btn quiet square small", textContent: "×" });
  dismiss.setAttribute("aria-label", "Dismiss");
  dismiss.dataset.dismiss = "";
  toast.append(Object.assign(document.createElement("div"), { textContent: text }), dismiss);
  find("#messages").replaceChildren(toast);
}

// Calls ``behave`` with each of these elements that the page has, and with those that htmx adds later.
export function onEach(selector, behave) {
  const all = (root) => {
    if (root.matches?.(selector)) behave(root);
    for (const element of root.querySelectorAll(selector)) behave(element);
  };
  all(document);
  document.addEventListener("htmx:load", ({ detail }) => all(detail.elt));
}
