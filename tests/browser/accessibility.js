// Runs axe on the page as it stands. Rules that compare elements take most of axe's time, so they judge each combination of
// colors, and of targets that lie close to others, only once.
async ({rules, closer, known, again}) => {
  // Contrast is measured on the colors a page comes to rest in, not on those half way to another theme.
  await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null)));
  const scope = document.querySelector("dialog:modal") ?? document; // what is behind a modal dialog is inert
  // What has passed is remembered by a hash of 53 bits: thousands of combinations are sent for each page.
  const learned = new Set(), seen = new Set(known.split(" "));
  const hash = (key) => {
    let [low, high] = [0xdeadbeef, 0x41c6ce57];
    for (let index = 0; index < key.length; index++) {
      low = Math.imul(low ^ key.charCodeAt(index), 2654435761);
      high = Math.imul(high ^ key.charCodeAt(index), 1597334677);
    }
    return ((high >>> 11) * 4294967296 + (low >>> 0)).toString(36);
  };
  const knows = (key) => seen.has(hash(key));
  const learn = (key) => knows(key) || learned.add(hash(key));
  const TARGETS = "a[href], area[href], button, input, select, textarea, summary, [role][tabindex]";
  const kind = (element) => element && `${element.localName}.${element.getAttribute("class") ?? ""}`;

  // On the second look at a document, all rules again only if a kind of element appeared that was never looked at so.
  const visible = [...scope.querySelectorAll("*")].filter((each) => each.checkVisibility({visibilityProperty: true}));
  const appeared = visible.filter((each) => !window.lookedAt?.has(each)).map((each) => `${kind(each.parentElement)} > ${kind(each)}`);
  const all = !again || appeared.some((key) => !knows(key));
  if (again) appeared.forEach(learn);
  window.lookedAt = new WeakSet(visible);
  const violations = all ? (await axe.run(scope, rules)).violations : [];

  // What decides on the contrast of a text: its font, its color and all that may lie below it.
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const {backgroundColor, backgroundImage, opacity, position, filter, mixBlendMode} = getComputedStyle(element);
      const place = /absolute|fixed|sticky/.test(position) ? kind(element) : "";
      const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, place].join();
      const isOpaque = opacity == 1 && /^rgb\(/.test(backgroundColor);
      const below = isOpaque ? "" : ground(element.parentElement);
      grounds.set(element, own == "rgba(0, 0, 0, 0),none,1,none,normal," ? below : `${own} ${below}`);
    }
    return grounds.get(element);
  };
  const texts = new Map(), others = new Map();
  const unless = (key, element) => knows(key) || others.set(element, [...(others.get(element) ?? []), key]);
  for (const element of visible) {
    const place = `${kind(element.parentElement)} > ${kind(element)}`;
    const {color, fontSize, fontWeight, textShadow, textDecorationLine, borderBottom, overflow} = getComputedStyle(element);
    const hasScrollbar = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight;
    if (!all && hasScrollbar && /auto|scroll/.test(overflow))
      unless(["scrolls", place, element.tabIndex >= 0, !!element.querySelector(TARGETS)].join(" "), element);
    const key = [color, fontSize, fontWeight, textShadow, ground(element)].join(" ");
    if (element.matches("a[href], [role=link]")) {
      const around = getComputedStyle(element.parentElement);
      unless(["link", place, key, textDecorationLine, borderBottom, around.color, around.fontWeight].join(" "), element);
    }
    const text = [...element.childNodes].map((node) => (node.nodeType == Node.TEXT_NODE ? node.data.trim() : "")).join("");
    if (!text && !element.matches("input, select, textarea")) continue;
    // axe does not judge icons, single letters, disabled controls and hidden labels, which says nothing of others.
    const tried = [place, text.length < 2, !!element.closest(":disabled, [aria-disabled=true]"), key].join(" ");
    if (!knows(key) && !knows(tried)) texts.set(element, {key, tried});
  }

  // A target of 24 pixels, or with so much room, is large enough unless another reaches into it.
  const targets = visible.filter((each) => each.matches(TARGETS)).map((element) => {
    const {left, top, right, bottom, width, height} = element.getBoundingClientRect();
    const [x, y] = [width, height].map((size) => Math.max(0, (24 - size) / 2));
    return {element, size: [width, height], left: left - x, top: top - y, right: right + x, bottom: bottom + y};
  });
  for (const {element, size, ...box} of targets) {
    const near = targets.filter((other) => other.element != element && other.left < box.right && other.right > box.left
      && other.top < box.bottom && other.bottom > box.top);
    const places = near.flatMap(({left, top, right, bottom}) => [left - box.left, top - box.top, right - box.left, bottom - box.top]);
    const numbers = [...size, ...places].map((each) => each.toFixed(1));
    if (near.length) unless(["target", kind(element.parentElement), kind(element), ...numbers].join(" "), element);
  }

  if (texts.size || others.size) {
    const judged = await axe.run({include: [...texts.keys(), ...others.keys()]}, closer);
    for (const {id, nodes} of judged.violations)
      for (const {element} of nodes) (id == "color-contrast" ? texts : others).delete(element);
    const passed = judged.passes.find(({id}) => id == "color-contrast")?.nodes ?? [];
    for (const {element} of passed) if (texts.has(element)) learn(texts.get(element).key);
    for (const {tried} of texts.values()) learn(tried);
    [...others.values()].flat().forEach(learn);
    violations.push(...judged.violations);
  }
  // An open menu or a message may cover a part of what it lies on: axe would call that small. What a message covers can be
  // scrolled out from below it (test_messages.py).
  const isCovered = ({failureSummary}) => document.querySelector("details.more[open], .toast") && failureSummary.includes("partially obscured");
  const left = violations.map((each) => ({...each, nodes: each.nodes.filter((node) => !isCovered(node)).map(({element, ...node}) => node)}));
  return {violations: left.filter(({nodes}) => nodes.length), learned: [...learned]};
}
