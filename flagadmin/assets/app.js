// What the pages do beyond what HTML does; every page works without it. Each module is a behavior, attached by data
// attributes, which its first lines name. The modules are joined (core/server/static_files.py).
import { onEach } from "./js/dom.js";
import "./js/tables.js";
import "./js/times.js";
import "./js/chips.js";
import "./js/sliders.js";
import "./js/shares.js";
import "./js/copying.js";
import "./js/menus.js";
import "./js/theme.js";
import "./js/keys.js";
import "./js/palette.js";
import "./js/excluding.js";
import "./js/ticking.js";
import "./js/time.js";
import "./js/forms.js";
import "./js/unsaved.js";
import "./js/live_filters.js";
import "./js/polling.js";
import "./js/redrawing.js";
import "./js/results.js";
import "./js/revealing.js";
import "./js/scheduling.js";
import "./js/asking.js";

// These do nothing without the script.
onEach("[data-copy], [data-copy-text], [data-add], [data-remove], [data-check-all], [data-open], [data-dismiss]", (button) => {
  button.hidden = false;
});
