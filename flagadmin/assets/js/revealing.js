// A button beside a password that shows it while it is typed. It is hidden again when the form is sent: browsers would
// otherwise remember it like any other text.
import { onEach } from "./dom.js";

function addReveal(input) {
  if (input.dataset.reveal) return;
  input.dataset.reveal = "yes";
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain reveal", textContent: "Show" });
  button.setAttribute("aria-controls", input.id);
  const show = (shown) => {
    input.type = shown ? "text" : "password";
    button.textContent = shown ? "Hide" : "Show";
  };
  button.addEventListener("click", () => show(input.type === "password"));
  input.form?.addEventListener("submit", () => show(false));
  input.after(button);
}

onEach("input[type=password][id]", addReveal);
