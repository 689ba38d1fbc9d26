// data-slider="#id": a slider of this number field.
import { find, onEach } from "./dom.js";

// The number field is what the form sends; it may hold what the slider cannot, such as 33.3.
function startSlider(slider) {
  const box = slider.closest("[hidden]");
  if (!box) return; // it was started before
  const field = find(slider.dataset.slider);
  const tell = () => slider.setAttribute("aria-valuetext", `${field.value} %`);
  box.hidden = false;
  slider.addEventListener("input", () => { field.value = slider.value; tell(); });
  field.addEventListener("input", () => { slider.value = field.value || 0; tell(); });
}

onEach("[data-slider]", startSlider);
