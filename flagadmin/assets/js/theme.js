// data-theme-form: the form that chooses light, dark or the system's theme.
import { find } from "./dom.js";
import { closeMenus } from "./menus.js";

function setTheme(theme, form) {
  const chosen = theme === "system" ? "" : theme;
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  find("meta[name=color-scheme]").content = chosen || "light dark";
  document.cookie = `theme=${chosen}; path=/; max-age=${chosen ? 31536000 : 0}; samesite=lax`;
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", button.value === theme);
  closeMenus();
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-theme-form]")) return;
  event.preventDefault();
  setTheme(event.submitter.value, event.target);
});

// Data fixes has no theme of its own in its first tag.
if (/^(dark|light)$/.test(find("meta[name=color-scheme]")?.content)) document.documentElement.dataset.theme = find("meta[name=color-scheme]").content;
