// data-chips: a text area with one value per line, shown as chips.
import { find, onEach } from "./dom.js";

// Lists of values; value_list.py reads and writes the same.
const ITEM = /[ \t\u00a0]*(?:("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")[ \t\u00a0]*(?=[,\r\n]|$)|([^,\r\n]*))/g;

function readValues(text) {
  const values = [];
  for (const [, quoted, plain] of text.matchAll(ITEM)) {
    const value = quoted === undefined ? plain.replace(/[ \t\u00a0]+$/, "") : JSON.parse(quoted);
    if (value || quoted) values.push(value);
  }
  return values;
}

function writeValue(value) {
  const read = readValues(value);
  return read.length === 1 && read[0] === value ? value : JSON.stringify(value);
}

// The text area stays what the form sends, with what is being typed as its last line.
function showChips(area) {
  if (area.hidden) return; // they were shown before
  const values = readValues(area.value);
  const box = document.createElement("div");
  const input = document.createElement("input");
  const send = (type) => {
    area.value = [...values.map(writeValue), input.value].filter((line) => line).join("\n");
    area.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const chip = (value, index) => {
    const element = document.createElement("span");
    const remove = document.createElement("button");
    element.className = "value-chip";
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${value}`);
    remove.addEventListener("click", () => { values.splice(index, 1); draw(); input.focus(); send("change"); });
    element.append(value, remove);
    return element;
  };
  input.leaveOut = () => { area.value = values.map(writeValue).join("\n"); };
  const draw = () => {
    for (const old of box.querySelectorAll(".value-chip")) old.remove();
    input.before(...values.map(chip));
  };
  const commit = () => {
    const typed = readValues(input.value);
    if (!typed.length) return;
    values.push(...typed.filter((value, index) => !values.includes(value) && typed.indexOf(value) === index));
    input.value = "";
    draw();
    send("change");
  };
  const isQuoting = () => /^\s*"(?:[^"\\]|\\.)*$/.test(input.value);

  for (const name of ["aria-label", "aria-invalid", "aria-describedby", "placeholder"])
    if (area.hasAttribute(name)) input.setAttribute(name, area.getAttribute(name));
  area.removeAttribute("aria-label");
  area.removeAttribute("aria-invalid");
  area.hidden = true;
  box.className = "value-chips";
  Object.assign(input, { autocomplete: "off", spellcheck: false });
  input.dataset.name = area.name;
  input.addEventListener("input", () => {
    if (input.value.includes(",") && !isQuoting()) commit();
    else send("input");
  });
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (!/[,\r\n]/.test(text) || input.value) return;
    event.preventDefault();
    values.push(...readValues(text).filter((value) => !values.includes(value)));
    draw();
    send("change");
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      commit();
    } else if (event.key === "Backspace" && !input.value && values.length) {
      event.preventDefault();
      input.value = writeValue(values.pop());
      draw();
    }
  });
  input.addEventListener("blur", commit);
  box.addEventListener("click", (event) => { if (event.target === box) input.focus(); });
  box.append(input);
  area.after(box);
  draw();
  if (unfinished?.name === area.name) {
    input.value = unfinished.text;
    input.focus();
    unfinished = undefined;
  } else if (area.autofocus) {
    input.focus();
  }
}

// What is being typed goes over to the chips that are drawn next.
let unfinished;

export function keepUnfinished(within) {
  const input = find(".value-chips input:focus", within);
  unfinished = input && { name: input.dataset.name, text: input.value };
  input?.leaveOut();
}

onEach("[data-chips]", showChips);
