// data-slider="#id": a slider of this number field, over the buckets that it fills (#strip).
import { find, onEach } from "./dom.js";

// The number field is what the form sends; it may hold what the slider cannot, such as 33.3.
function startSlider(slider) {
  if (!slider.hidden) return; // it was started before
  const field = find(slider.dataset.slider);
  const tell = () => {
    slider.setAttribute("aria-valuetext", `${field.value} %`);
    fillBuckets(Number(slider.value));
  };
  slider.hidden = false;
  slider.addEventListener("input", () => { field.value = slider.value; tell(); });
  field.addEventListener("input", () => { slider.value = field.value || 0; tell(); });
  for (const control of [slider, field]) control.addEventListener("keydown", stepByTen);
}

// Shift and an arrow move by 10. In the number field, left and right move the caret.
function stepByTen(event) {
  const steps = { ArrowUp: 10, ArrowDown: -10, ...(event.target.type === "range" && { ArrowRight: 10, ArrowLeft: -10 }) };
  if (!event.shiftKey || !steps[event.key]) return;
  event.preventDefault();
  event.target.value = Math.max(0, Math.min(100, Number(event.target.value) + steps[event.key]));
  for (const name of ["input", "change"]) event.target.dispatchEvent(new Event(name, { bubbles: true }));
}

// The server draws them anew when the handle stands still.
function fillBuckets(share) {
  const strip = find("#strip svg[data-stored]"), stored = Number(strip?.dataset.stored);
  if (!strip) return;
  const kept = Math.min(stored, share);
  const parts = { was: [0, kept], gain: [kept, share - kept], loss: [share, Math.max(0, stored - share)] };
  for (const [name, [x, width]] of Object.entries(parts)) {
    find(`.${name}`, strip).setAttribute("x", `${x}%`);
    find(`.${name}`, strip).setAttribute("width", `${width}%`);
  }
}

onEach("[data-slider]", startSlider);
